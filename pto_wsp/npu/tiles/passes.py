"""List the passes of a tile program in order.

Selection gives tiles and instructions. After the passes every on-chip buffer has its address, and flags order the pipes.
"""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.isa.tile_program_text import print_program
from pto_wsp.npu.tiles.plan_memory import double_buffer, drop_unused, plan_memory, verify_after_drop_unused, verify_after_plan_memory
from pto_wsp.npu.tiles.sync import insert_sync
from pto_wsp.passes.pipeline import Fact, Level, Pass

TILE_PROGRAM = Level("tile program", TileProgram, print_program)
TileProgramPass = Pass[TileProgram, Arch]

_ADDRESSES, _FLAGS = frozenset({Fact.ADDRESSES}), frozenset({Fact.FLAGS})

TILE_PROGRAM_PASSES: tuple[TileProgramPass, ...] = (
    # every tile is used
    Pass("drop_unused", TILE_PROGRAM, drop_unused, verify_after_drop_unused),
    # loops write one copy of a buffer while they read the other
    Pass("double_buffer", TILE_PROGRAM, double_buffer),
    # every buffer has an address; raises K110 if the buffers exceed the memories of the arch
    Pass("plan_memory", TILE_PROGRAM, plan_memory, verify_after_plan_memory, establishes=_ADDRESSES,
         required="an instruction needs the addresses of its tiles"),
    # no pipe runs ahead of its operands
    Pass("insert_sync", TILE_PROGRAM, insert_sync, needs=_ADDRESSES, establishes=_FLAGS,
         required="pipes run at the same time: without flags, one reads what another has not written"),
)
