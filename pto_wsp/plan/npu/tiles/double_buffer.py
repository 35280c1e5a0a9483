"""Let loops use two copies of a room in turn, so that one is filled while the other is read.

    room x                       room x, 2 copies
    for j:                       for j:
        x = T[j]                     x (copy j % 2) = T[j]
        use x                        use x

That pays for rooms that two pipes touch, one to fill and one to take: what is loaded, what is stored, and what feeds the matrix unit.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Pipe
from pto_wsp.plan.npu.tiles.lives import lives_of
from pto_wsp.plan.npu.tiles.touches import turn_of
from pto_wsp.types.scalar import Const, Scalar

COPIES = 2


def double_buffer(program: tp.TileProgram, arch: Arch) -> tp.TileProgram:
    """Return the program with two copies of the rooms that loops pass from pipe to pipe, in memories of known size."""
    turns: dict[int, Scalar] = {}
    for life in lives_of(program):
        bounded = arch.memory(life.room.space.value).usable_bytes is not None
        if bounded and life.loops and len(life.pipes) > 1 and Pipe.S not in life.pipes and _turns_often(life.loops[-1]):
            turns[life.room.id] = turn_of(life.loops[-1])
    rooms = tuple(replace(room, copies=COPIES) if room.id in turns else room for room in program.rooms)
    return with_turns(replace(program, rooms=rooms), turns)


def with_turns(program: tp.TileProgram, turns: dict[int, Scalar]) -> tp.TileProgram:
    """Return the program with tiles declared at the copies that `turns` says, by room; other rooms stay as they are."""
    room_of = {tile.id: tile.room for tile in program.tiles}

    def changed(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
        return tuple(one(step) for step in body)

    def one(step: tp.Step) -> tp.Step:
        match step:
            case tp.Declare(tile) if room_of[tile] in turns:
                return replace(step, turn=turns[room_of[tile]])
            case tp.Loop():
                return replace(step, body=changed(step.body))
            case tp.Branch():
                return replace(step, then=changed(step.then), other=changed(step.other))
            case _:
                return step

    return replace(program, body=changed(program.body))


def without_copies(program: tp.TileProgram, room_id: int) -> tp.TileProgram:
    """Return the program with one copy of a room."""
    rooms = tuple(replace(room, copies=1) if room.id == room_id else room for room in program.rooms)
    return with_turns(replace(program, rooms=rooms), {room_id: Const(0)})


def _turns_often(loop: tp.Loop) -> bool:
    """False for a loop that is known to have one turn at most."""
    bounds = loop.start, loop.stop, loop.step
    numbers = [int(bound.value) for bound in bounds if isinstance(bound, Const)]
    return len(numbers) < 3 or len(range(*numbers)) > 1
