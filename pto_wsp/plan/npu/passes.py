"""The passes of a tile program, in order, on one page.

Selection gives tiles and instructions; after these passes every room has its address, and flags order the pipes.
"""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.arch.model import Arch
from pto_wsp.errors import InternalError
from pto_wsp.expr.tile_program import TileProgram
from pto_wsp.plan.npu.tiles.double_buffer import double_buffer
from pto_wsp.plan.npu.tiles.drop_unused import drop_unused, verify_after_drop_unused
from pto_wsp.plan.npu.tiles.insert_sync import insert_sync
from pto_wsp.plan.npu.tiles.plan_memory import plan_memory, verify_after_plan_memory
from pto_wsp.values import dataclass


def _nothing(program: TileProgram) -> None:
    """For a pass that establishes nothing to check."""


@dataclass(frozen=True, slots=True)
class TileProgramPass:
    """A step from tile program to tile program, and what holds after it."""

    name: str
    run: Callable[[TileProgram, Arch], TileProgram]
    verify: Callable[[TileProgram], None] = _nothing


TILE_PROGRAM_PASSES = (
    TileProgramPass("drop_unused", drop_unused, verify_after_drop_unused),   # every tile is used
    TileProgramPass("double_buffer", double_buffer),                         # loops fill a room while they read its other copy
    TileProgramPass("plan_memory", plan_memory, verify_after_plan_memory),   # every room has its place
    TileProgramPass("insert_sync", insert_sync),                             # no pipe runs ahead of what it needs
)

TileProgramObserver = Callable[[str, TileProgram, TileProgram], None]


def run_tile_program_passes(program: TileProgram, arch: Arch, observe: TileProgramObserver | None = None) -> TileProgram:
    """Return the tile program after all passes; `observe` is told (name, before, after) of each.

    Raises: K110 when the rooms do not fit the memories of `arch`, InternalError naming the pass whose `verify` finds that what it
    establishes does not hold.
    """
    for step in TILE_PROGRAM_PASSES:
        after = step.run(program, arch)
        try:
            step.verify(after)
        except AssertionError as broken:
            raise InternalError(f"after pass `{step.name}` this does not hold for kernel `{program.name}`: {step.verify.__doc__}",
                                f"{broken}\n{after}") from broken
        if observe is not None:
            observe(step.name, program, after)
        program = after
    return program
