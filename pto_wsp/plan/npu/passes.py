"""The passes of a tile program, in order, on one page.

Selection gives tiles and instructions; after these passes every room has its address, and flags order the pipes.
"""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.expr.tile_program import TileProgram
from pto_wsp.expr.tile_program_text import print_program
from pto_wsp.passes.pipeline import Fact, Level, Pass
from pto_wsp.plan.npu.tiles.double_buffer import double_buffer
from pto_wsp.plan.npu.tiles.drop_unused import drop_unused, verify_after_drop_unused
from pto_wsp.plan.npu.tiles.insert_sync import insert_sync
from pto_wsp.plan.npu.tiles.plan_memory import plan_memory, verify_after_plan_memory

TILE_PROGRAM = Level("tile program", TileProgram, print_program)
TileProgramPass = Pass[TileProgram, Arch]

_ADDRESSES, _FLAGS = frozenset({Fact.ADDRESSES}), frozenset({Fact.FLAGS})

TILE_PROGRAM_PASSES: tuple[TileProgramPass, ...] = (
    # every tile is used
    Pass("drop_unused", TILE_PROGRAM, drop_unused, verify_after_drop_unused),
    # loops fill a room while they read its other copy
    Pass("double_buffer", TILE_PROGRAM, double_buffer),
    # every room has its place; raises K110 where the rooms do not fit the memories of the arch
    Pass("plan_memory", TILE_PROGRAM, plan_memory, verify_after_plan_memory, establishes=_ADDRESSES),
    # no pipe runs ahead of what it needs
    Pass("insert_sync", TILE_PROGRAM, insert_sync, needs=_ADDRESSES, establishes=_FLAGS),
)
