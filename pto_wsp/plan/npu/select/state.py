"""Buffers of a kernel: which reads of one need a copy, and which results are made in it at once.

    %1 = read acc
    %2 = add %1, %0          %1 is acc itself, and %2 is made in it: no tile is copied
    acc[:] = %2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import bodies_of, touches_buffer, uses_of, walk, writes_buffer
from pto_wsp.plan.kernel.values import use_counts
from pto_wsp.values import dataclass

# Their instructions may write over a whole operand, which they have read by then element by element.
IN_PLACE = frozenset({"add", "sub", "mul", "div", "maximum", "minimum", "abs", "neg", "relu"})


@dataclass(frozen=True, slots=True)
class State:
    """`copied`: reads of buffers, by value, whose buffer changes before their last use. `direct`: the buffer that a result is made in."""

    copied: frozenset[int]
    direct: Mapping[int, k.Buffer]


def state_of(kernel: k.Kernel) -> State:
    """Return what is known of the buffers of a kernel."""
    uses = use_counts(kernel.body)
    direct: dict[int, k.Buffer] = {}
    copied: set[int] = set()
    for body in _bodies(kernel.body):
        made = dict(_direct(body, uses))
        direct.update({value: buffer for value, (buffer, _) in made.items()})
        changes = {at: buffer for buffer, at in made.values()}
        copied.update(stmt.result.id for at, stmt in enumerate(body) if isinstance(stmt, k.Read) and _changes(body, at, stmt, changes))
    return State(frozenset(copied), direct)


def _bodies(body: Sequence[k.Stmt]) -> Iterator[Sequence[k.Stmt]]:
    yield body
    for stmt in walk(tuple(body)):
        yield from bodies_of(stmt)


def _direct(body: Sequence[k.Stmt], uses: Mapping[int, int]) -> Iterator[tuple[int, tuple[k.Buffer, int]]]:
    """Yield results that are made in a buffer, with the buffer and the place of the statement."""
    place = {stmt.result.id: at for at, stmt in enumerate(body) if isinstance(stmt, k.Compute) and stmt.op in IN_PLACE}
    for end, stmt in enumerate(body):
        if not isinstance(stmt, k.Write) or uses[stmt.value.id] != 1 or stmt.value.id not in place:
            continue
        at, buffer = place[stmt.value.id], stmt.buffer
        alive = {read.result.id for read in body[:at] if isinstance(read, k.Read) and read.buffer.id == buffer.id}
        if not any(touches_buffer(between, buffer) for between in body[at + 1:end]) \
                and not any(value.id in alive for later in body[at + 1:] for value in uses_of(later)):
            yield stmt.value.id, (buffer, at)


def _changes(body: Sequence[k.Stmt], at: int, read: k.Read, changes: Mapping[int, k.Buffer]) -> bool:
    """Tell whether the buffer changes between a read and the last use of what was read."""
    last = max((n for n, stmt in enumerate(body) if n > at and any(v.id == read.result.id for v in uses_of(stmt))), default=at)
    for n in range(at + 1, last + 1):
        stmt = body[n]
        if n == last and not bodies_of(stmt):
            return False   # it reads before it writes
        if writes_buffer(stmt, read.buffer) or (n in changes and changes[n].id == read.buffer.id):
            return True
    return False
