"""Tile programs with one thing wrong: a flag, wait or barrier left out, another event, an address that has moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pto_wsp.ir.scalar import Const
from pto_wsp.npu.isa import tile_program as tp

Body = tuple[tp.Step, ...]
Sync = tp.SetFlag | tp.WaitFlag | tp.Barrier


def _rewritten(body: Body, change: Callable[[tp.Step], tp.Step | None]) -> Body:
    found: list[tp.Step] = []
    for step in body:
        changed = change(step)
        match changed:
            case None:
                continue
            case tp.For():
                changed = replace(changed, body=_rewritten(changed.body, change))
            case tp.If():
                changed = replace(changed, then=_rewritten(changed.then, change), other=_rewritten(changed.other, change))
            case _:
                pass
        found.append(changed)
    return tuple(found)


def _at(program: tp.TileProgram, target: tp.Step, new: tp.Step | None) -> tp.TileProgram:
    return replace(program, body=_rewritten(program.body, lambda step: new if step is target else step))


def distinct(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program with every step an object of its own, so that one can be told from its like."""
    return replace(program, body=_rewritten(program.body, lambda step: replace(step)))


def without_one_step(program: tp.TileProgram) -> Iterator[tuple[str, tp.TileProgram]]:
    """Leave out each flag, wait and barrier."""
    for step in tp.steps(program.body):
        if isinstance(step, Sync):
            yield f"without {step}", _at(program, step, None)


def without_a_flag(program: tp.TileProgram) -> Iterator[tuple[str, tp.TileProgram]]:
    """Leave out each flag with its wait, where these stand in one block."""
    def blocks(body: Body) -> Iterator[Body]:
        yield body
        for step in body:
            if isinstance(step, tp.For):
                yield from blocks(step.body)
            elif isinstance(step, tp.If):
                yield from blocks(step.then)
                yield from blocks(step.other)

    for body in blocks(program.body):
        for at, step in enumerate(body):
            if not isinstance(step, tp.SetFlag):
                continue
            wait = next((one for one in body[at + 1:] if isinstance(one, tp.WaitFlag)
                         and (one.after, one.before, one.event) == (step.after, step.before, step.event)), None)
            if wait is not None:
                gone = (step, wait)
                yield f"without {step} and its wait", replace(program, body=_rewritten(
                    program.body, lambda one, gone=gone: None if any(one is other for other in gone) else one))   # type: ignore[misc]


def with_another_event(program: tp.TileProgram) -> Iterator[tuple[str, tp.TileProgram]]:
    """Change the event of each flag and wait."""
    for step in tp.steps(program.body):
        if isinstance(step, tp.SetFlag | tp.WaitFlag) and isinstance(step.event, Const):
            yield f"{step} with another event", _at(program, step, replace(step, event=Const((int(step.event.value) + 1) % 8)))


def with_moved_rooms(program: tp.TileProgram) -> Iterator[tuple[str, tp.TileProgram]]:
    """Shift the address of each buffer by one block either way, and by half a block."""
    for buffer in program.buffers:
        assert buffer.address is not None
        for distance in (-32, 32, 16):
            moved = replace(buffer, address=buffer.address + distance)
            buffers = tuple(moved if one.id == buffer.id else one for one in program.buffers)
            yield f"{buffer.name} moved by {distance}", replace(program, buffers=buffers)


def with_neighbours_swapped(program: tp.TileProgram) -> Iterator[tuple[str, tp.TileProgram]]:
    """Exchange the addresses of two buffers of different sizes."""
    for one, two in zip(program.buffers, program.buffers[1:], strict=False):
        if one.space is two.space and one.size_bytes * one.copies != two.size_bytes * two.copies:
            moved = {one.id: replace(one, address=two.address), two.id: replace(two, address=one.address)}
            buffers = tuple(moved.get(buffer.id, buffer) for buffer in program.buffers)
            yield f"{one.name} and {two.name} exchanged", replace(program, buffers=buffers)
