"""Statements of a block: what stands in program order, be it one launch or the several that one task became.

The launches of one task are a run of neighbours with one source, or a block or scope in which all have one source. Their order is that
of their data; a task waits when all its launches do, and has ended when all have.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TypeAlias

from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send, SetSlot
from pto_wsp.plan.npu.model import Block, Communication, Drain, Fork, Launch, Network, NpuItem, Repeat, Scope, Unordered
from pto_wsp.plan.npu.walk import launches_of
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that one task is made of."""

    source: int
    items: tuple[NpuItem, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Its launches in program order."""
        return tuple(launch for item in self.items for launch in launches_of(item))

    @property
    def count(self) -> int | None:
        """How many tasks of the runtime it is, None where that is known only at run time."""
        return total(n_launches(item) for item in self.items)


Statement: TypeAlias = Task | Repeat | Fork | SetSlot | Unordered | Scope | Block | Network | Drain | Communication


def statements(block: Block) -> tuple[Statement, ...]:
    """Return the statements of a block in order."""
    found: list[Statement] = []
    for item in block.items:
        statement = _statement(item)
        last = found[-1] if found else None
        if isinstance(statement, Task) and isinstance(last, Task) and last.source == statement.source:
            found[-1] = Task(last.source, (*last.items, item))
        else:
            found.append(statement)
    return tuple(found)


def _statement(item: NpuItem) -> Statement:
    match item:
        case Launch(source=source):
            return Task(source, (item,))
        case Scope(tensors=()):
            sources = {launch.source for launch in launches_of(item)}
            return Task(sources.pop(), (item,)) if len(sources) == 1 else item
        case Block(items):
            parts = [part for part in map(_statement, items) if isinstance(part, Task)]
            alone = len(parts) == len(items) and len({part.source for part in parts}) == 1
            return Task(parts[0].source, items) if alone else item
        case _:
            return item


def surely_submits(statement: Statement) -> bool:
    """Tell whether a statement submits a task, whatever is known only at run time."""
    match statement:
        case Task(items=items):
            return any(n_launches(item) not in (None, 0) for item in items)
        case Repeat(body=body):
            return bool(turns_of(statement)) and surely_submits(body)
        case Fork():
            return all(map(surely_submits, statement.bodies))
        case Unordered(sides):
            return any(map(surely_submits, sides))
        case Scope(body=body):
            return surely_submits(body)
        case Block():
            return any(map(surely_submits, statements(statement)))
        case SetSlot() | Network() | Drain() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return False


def turns_of(loop: Repeat) -> int | None:
    """Return how often a loop runs, None where that is known only at run time."""
    match loop.start, loop.stop, loop.step:
        case s.Const(start), s.Const(stop), s.Const(step):
            return len(range(int(start), int(stop), int(step)))
        case _:
            return None


def turns_of_tokens(drain: Drain) -> Repeat:
    """Return a loop that stands for the taking of tokens: nobody knows how many, and what they carry is no number times a turn."""
    return Repeat(s.Var("token", -1), s.Const(0), s.SlotValue(-1), s.Const(1), True, drain.body)


def times(*counts: int | None) -> int | None:
    """Return the product, None where a factor is not known and no other is 0."""
    if 0 in counts:
        return 0
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum, None where a part is not known."""
    found = 0
    for count in counts:
        if count is None:
            return None
        found += count
    return found


def n_launches(item: NpuItem) -> int | None:
    """Return how many tasks an item submits, None where that is known only at run time."""
    match item:
        case Launch():
            return 1
        case Repeat(body=body):
            return times(turns_of(item), n_launches(body))
        case Scope(body=body):
            return n_launches(body)
        case Fork():
            counts = {n_launches(body) for body in item.bodies}
            return counts.pop() if len(counts) == 1 else None
        case Unordered(parts) | Block(parts):
            return total(n_launches(part) for part in parts)
        case Network() | Drain():
            return None
        case SetSlot() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return 0
