"""Leave out of a program what nothing uses: scalars by name, tiles that are never declared, rooms without tiles."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.rewrite import nodes
from pto_wsp.types.scalar import Var


def tidy(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program without names, tiles and rooms that nothing uses."""
    declared = {step.tile for step in tp.steps(program.body) if isinstance(step, tp.Declare)}
    tiles = tuple(tile for tile in program.tiles if tile.id in declared)
    lying = {tile.room for tile in tiles}
    program = replace(program, tiles=tiles, rooms=tuple(room for room in program.rooms if room.id in lying))
    while (body := _without_unused(program)) != program.body:
        program = replace(program, body=body)
    return program


def _without_unused(program: tp.TileProgram) -> tuple[tp.Step, ...]:
    used: set[Var] = {node for node in nodes(program.tiles) if isinstance(node, Var)}
    for step in tp.steps(program.body):
        match step:
            case tp.Let(_, value):
                used.update(node for node in nodes(value) if isinstance(node, Var))
            case tp.Loop():
                used.update(node for node in nodes((step.start, step.stop, step.step)) if isinstance(node, Var))
            case tp.Branch():
                used.update(node for node in nodes(step.condition) if isinstance(node, Var))
            case _:
                used.update(node for node in nodes(step) if isinstance(node, Var))
    unused = {step.var for step in tp.steps(program.body) if isinstance(step, tp.Let)} - used
    if not unused:
        return program.body

    def kept(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
        out: list[tp.Step] = []
        for step in body:
            match step:
                case tp.Let(var) if var in unused:
                    continue
                case tp.Loop():
                    step = replace(step, body=kept(step.body))
                case tp.Branch():
                    step = replace(step, then=kept(step.then), other=kept(step.other))
                case _:
                    pass
            out.append(step)
        return tuple(out)

    return kept(program.body)
