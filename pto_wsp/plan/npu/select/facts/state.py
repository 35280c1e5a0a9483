"""Buffers of a kernel: which reads of one need a copy, and which results are made in it at once.

    %1 = read acc
    %2 = add %1, %0          %1 is acc itself, and %2 is made in it: no tile is copied
    acc[:] = %2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import bodies_of, result_of, touches_buffer, uses_of, walk, writes_buffer
from pto_wsp.plan.npu.select.rules.elements.elementwise import IN_PLACE
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """`copied`: reads of buffers, by value, whose buffer changes before their last use. `direct`: the buffer that a result is made in.

    A result made in a buffer is what the buffer holds until it changes, which is not before its last use.
    """

    copied: frozenset[int]
    direct: Mapping[int, k.Buffer]


def state_of(kernel: k.Kernel) -> State:
    """Return what is known of the buffers of a kernel."""
    direct: dict[int, k.Buffer] = {}
    copied: set[int] = set()
    for body in _bodies(kernel.body):
        made = dict(_direct(body))
        direct.update({value: buffer for value, (buffer, _) in made.items()})
        changes = {at: buffer for buffer, at in made.values()}
        copied.update(stmt.result.id for at, stmt in enumerate(body) if isinstance(stmt, k.Read) and _changes(body, at, stmt, changes))
    return State(frozenset(copied), direct)


def _bodies(body: Sequence[k.Stmt]) -> Iterator[Sequence[k.Stmt]]:
    yield body
    for stmt in walk(tuple(body)):
        yield from bodies_of(stmt)


def _direct(body: Sequence[k.Stmt]) -> Iterator[tuple[int, tuple[k.Buffer, int]]]:
    """Yield results that are made in a buffer, with the buffer and the place of the statement."""
    place = {stmt.result.id: at for at, stmt in enumerate(body) if isinstance(stmt, k.Compute) and stmt.op in IN_PLACE}
    inside: dict[int, set[int]] = {}      # by buffer: the values that are what it held
    for read in body:
        if isinstance(read, k.Read):
            inside.setdefault(read.buffer.id, set()).add(read.result.id)
    for end, stmt in enumerate(body):
        if not isinstance(stmt, k.Write) or stmt.value.id not in place:
            continue
        at, buffer, held = place[stmt.value.id], stmt.buffer, inside.setdefault(stmt.buffer.id, set())
        if not any(touches_buffer(between, buffer) for between in body[at + 1:end]) \
                and not any(_made(body, value, at) for value in held if _last_use(body, value) > at) \
                and not _written(body, end, _last_use(body, stmt.value.id), buffer):
            held.add(stmt.value.id)
            yield stmt.value.id, (buffer, at)


def _made(body: Sequence[k.Stmt], value: int, before: int) -> bool:
    """Tell whether a value is made before some place of the body."""
    return any((result := result_of(stmt)) is not None and result.id == value for stmt in body[:before])


def _last_use(body: Sequence[k.Stmt], value: int) -> int:
    """Return the place of the last statement that uses a value, -1 where there is none."""
    return max((at for at, stmt in enumerate(body) if any(used.id == value for used in uses_of(stmt))), default=-1)


def _written(body: Sequence[k.Stmt], after: int, last: int, buffer: k.Buffer) -> bool:
    """Tell whether a buffer is written behind one place before the statement at another has read."""
    return any(writes_buffer(stmt, buffer) and (at < last or bool(bodies_of(stmt))) for at, stmt in enumerate(body) if after < at <= last)


def _changes(body: Sequence[k.Stmt], at: int, read: k.Read, changes: Mapping[int, k.Buffer]) -> bool:
    """Tell whether the buffer changes between a read and the last use of what was read; a statement reads before it writes."""
    last = _last_use(body, read.result.id)
    return _written(body, at, last, read.buffer) or any(buffer.id == read.buffer.id for n, buffer in changes.items() if at < n < last)
