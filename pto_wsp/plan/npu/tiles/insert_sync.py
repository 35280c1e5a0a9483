"""Put in the flags and barriers that order the pipes of a core."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.expr.tile_program import Branch, Loop, Pipe, SetFlag, Step, TileProgram, WaitFlag, pipe_of
from pto_wsp.types.scalar import Const


def insert_sync(program: TileProgram, arch: Arch) -> TileProgram:
    """Return the program with every step of work waiting for the one before: pipe S hands the turn on and gets it back."""
    return replace(program, body=_serial(program.body, program))


def _serial(body: tuple[Step, ...], program: TileProgram) -> tuple[Step, ...]:
    done: list[Step] = []
    for step in body:
        match step:
            case Loop():
                done.append(replace(step, body=_serial(step.body, program)))
            case Branch():
                done.append(replace(step, then=_serial(step.then, program), other=_serial(step.other, program)))
            case _:
                pipe = pipe_of(step, program)
                if pipe is None or pipe is Pipe.S:
                    done.append(step)
                else:
                    done += [*_handshake(Pipe.S, pipe, step), step, *_handshake(pipe, Pipe.S, step)]
    return tuple(done)


def _handshake(after: Pipe, before: Pipe, step: Step) -> tuple[Step, Step]:
    return SetFlag(after, before, Const(7), step.span), WaitFlag(after, before, Const(7), step.span)
