"""Find the Python variable that a traced body changes as if it ran more than once, or not at all.

`acc = acc + x` in a loop reads what the turn before has left, in Python. A body is traced once, so there is no turn before: the
variable would be read as it was ahead of the loop, in every turn. State that is carried lives in a buffer.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType, FrameType, UnionType

import numpy as np

from pto_wsp.source import Span
from pto_wsp.types.symbolic import Symbolic
from pto_wsp.values import dataclass

NUMBERS = Symbolic | int | float | str | np.generic


@dataclass(frozen=True, slots=True)
class Carried:
    """A variable that a body reads and then assigns to, where it does the latter, and what it held ahead of the body."""

    name: str
    span: Span
    before: object


def held_by_names(frame: FrameType, kinds: UnionType) -> Mapping[str, object]:
    """Return the frame's variables that hold values of some kinds, globals that it assigns to included."""
    return {name: value for name, value in _variables(frame).items() if isinstance(value, kinds)}


def _variables(frame: FrameType) -> Mapping[str, object]:
    names = _stored_globals(frame.f_code)
    return {**{name: frame.f_globals[name] for name in names if name in frame.f_globals}, **frame.f_locals} if names else frame.f_locals


@lru_cache(maxsize=256)
def _stored_globals(code: CodeType) -> frozenset[str]:
    return frozenset(str(each.argval) for each in dis.get_instructions(code) if each.opname == "STORE_GLOBAL")


def carried_by(frame: FrameType, start: int, end: int | None, before: Mapping[str, object]) -> Carried | None:
    """Return the first variable that the instructions from `start` to `end` read and then assign another value to.

    `end` None: up to where the `for` at `start` ends. `before`: what the variables held ahead of them.
    """
    now = _variables(frame)
    changed = {name for name, value in before.items() if name in now and not _same(value, now[name])}
    if not changed:
        return None
    if end is None:
        end = _loop_end(frame.f_code, start)
    read: set[str] = set()
    for offset, stores, name, span in _accesses(frame.f_code):
        if not start < offset < end or name not in changed:
            continue
        if not stores:
            read.add(name)
        elif name in read:
            return Carried(name, span, before[name])
        else:
            changed.discard(name)   # assigned to first: a variable of this body's own
    return None


def _same(before: object, now: object) -> bool:
    if before is now:
        return True
    if isinstance(before, Symbolic) and isinstance(now, Symbolic):
        return before.node == now.node
    plain = int | float | str | np.generic
    return isinstance(before, plain) and isinstance(now, plain) and type(before) is type(now) and bool(before == now)


@lru_cache(maxsize=64)
def _accesses(code: CodeType) -> tuple[tuple[int, bool, str, Span], ...]:
    """Return (offset, whether it stores, variable, place) of every access to a variable of the function, in order."""
    return tuple(access for each in dis.get_instructions(code) for access in _accesses_of(code, each))


def _accesses_of(code: CodeType, each: dis.Instruction) -> Iterator[tuple[int, bool, str, Span]]:
    verbs = [word for word in each.opname.split("_") if word in ("LOAD", "STORE")]
    if not any(kind in each.opname for kind in ("FAST", "DEREF", "GLOBAL")):
        return
    names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
    at = each.positions
    line = (at.lineno if at else None) or 0
    column = (at.col_offset if at else None) or 0
    span = Span(code.co_filename, line, column + 1, (at.end_lineno if at else None) or 0, ((at.end_col_offset if at else None) or 0) + 1)
    for verb, name in zip(verbs, names, strict=False):
        yield each.offset, verb == "STORE", str(name), span


@lru_cache(maxsize=256)
def _loop_end(code: CodeType, start: int) -> int:
    for each in dis.get_instructions(code):
        if each.offset == start:
            return each.argval if each.opname == "FOR_ITER" else start
    return start
