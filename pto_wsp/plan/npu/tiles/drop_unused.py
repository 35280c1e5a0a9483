"""Leave out tiles that no step uses, their declarations, and rooms without tiles."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.expr import tile_program as tp


def drop_unused(program: tp.TileProgram, arch: Arch) -> tp.TileProgram:
    """Return the program with the tiles and rooms that it uses."""
    used = {use.tile for step in tp.steps(program.body) for use in tp.uses_of(step)}

    def kept(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
        return tuple(one(step) for step in body if not (isinstance(step, tp.Declare) and step.tile not in used))

    def one(step: tp.Step) -> tp.Step:
        match step:
            case tp.Loop():
                return replace(step, body=kept(step.body))
            case tp.Branch():
                return replace(step, then=kept(step.then), other=kept(step.other))
            case _:
                return step

    tiles = tuple(tile for tile in program.tiles if tile.id in used)
    homes = {tile.room for tile in tiles}
    return replace(program, body=kept(program.body), tiles=tiles, rooms=tuple(room for room in program.rooms if room.id in homes))


def verify_after_drop_unused(program: tp.TileProgram) -> None:
    """Every tile is used, and every room has one."""
    used = {use.tile for step in tp.steps(program.body) for use in tp.uses_of(step)}
    assert {tile.id for tile in program.tiles} == used
    assert {room.id for room in program.rooms} == {tile.room for tile in program.tiles}
