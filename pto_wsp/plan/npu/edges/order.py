"""Program order: which tasks must be told to wait for what stands before them, and which others are then waited for.

Where a plan asks for structure, statements of a body follow one another, as do the turns of an ordered loop. Most do so by their data
already: the runtime orders a task behind those that write what it reads or writes. Only the other places need to be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import assert_never

from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send, SetSlot
from pto_wsp.plan.npu.edges.overlap import Moved, always_moving, left_behind, ordered_by_data
from pto_wsp.plan.npu.edges.statements import Statement, Task, statements, surely_submits, times, total, turns_of
from pto_wsp.plan.npu.model import Block, Drain, Fork, Network, NpuPlan, Repeat, Scope, Unordered
from pto_wsp.values import dataclass

UNKNOWN_TASKS = -1


@dataclass(frozen=True, slots=True)
class Last:
    """A task that may be the last one before here: how many times, and what may have changed since. None: what tokens wait for."""

    task: Task | None
    count: int | None
    moved: Moved


@dataclass(slots=True)
class ProgramOrder:
    """By source: who waits for what stands before it (how many tasks at most), and who is waited for."""

    waits: dict[int, int | None] = field(default_factory=dict)
    counts: set[int] = field(default_factory=set)
    moving: Moved = frozenset()     # what may change between any two tasks
    ends: dict[tuple[object, ...], tuple[Block, tuple[Last, ...]]] = field(default_factory=dict)     # by block and lasts before it


def program_order(plan: NpuPlan) -> ProgramOrder:
    """Return what has to be told for the plan's structure, nothing where it asks for none."""
    found = ProgramOrder(moving=always_moving(plan))
    if plan.structure:
        _block(plan.body, (), found)
    return found


def last_tasks(block: Block) -> frozenset[int]:
    """Return the sources of the tasks that a block may end with, UNKNOWN_TASKS among them where it ends with what tokens wait for."""
    return frozenset(_source(last) for last in _block(block, (), ProgramOrder()))


def _source(last: Last) -> int:
    return UNKNOWN_TASKS if last.task is None else last.task.source


def _block(block: Block, before: tuple[Last, ...], found: ProgramOrder) -> tuple[Last, ...]:
    """Return the tasks that a block may end with. An ordered loop asks twice for its body, so that nested loops would ask 2^depth times:
    a block is worked out once for equal `before`."""
    key = (id(block), *((_source(last), last.count, last.moved) for last in before))
    if key not in found.ends:
        found.ends[key] = block, _ends(block, before, found)      # the block is kept, so that no other one takes its id
    return found.ends[key][1]


def _ends(block: Block, before: tuple[Last, ...], found: ProgramOrder) -> tuple[Last, ...]:
    for statement in statements(block):
        behind = _statement(statement, before, found)
        replaces = surely_submits(statement) or isinstance(statement, Send | Receive | AwaitEvent)
        before = behind if replaces else _merged(behind, before)
    return before


def _statement(statement: Statement, before: tuple[Last, ...], found: ProgramOrder) -> tuple[Last, ...]:
    match statement:
        case Task(source):
            if not all(last.task is not None and ordered_by_data(last.task, statement, last.moved) for last in before):
                bound = total(last.count for last in before)
                known = found.waits.get(source, 0)
                found.waits[source] = None if bound is None or known is None else max(bound, known)
                found.counts.update(map(_source, before))
            return (Last(statement, statement.count, found.moving),)
        case Repeat(ordered=ordered, body=body):
            if not ordered:
                return _left(_block(body, before, found), statement, turns_of(statement))
            first = _left(_block(body, before, found), statement, 1)
            return _merged(first, _left(_block(body, first, found), statement, 1))     # what a turn ends with stands before the next
        case Fork():
            return _merged(*(_block(body, before, found) for body in statement.bodies))
        case Unordered(sides):
            return _merged(*(_block(side, before, found) for side in sides))
        case Scope(body=body):
            return _left(_block(body, before, found), statement, 1)
        case Block():
            return _block(statement, before, found)
        case SetSlot():
            return before
        case Network(stages):
            return _merged(*(tuple(replace(last, count=times(last.count, stage.replicas)) for last in _block(stage.body, before, found))
                             for stage in stages))
        case Drain(body=body):
            found.counts.update(map(_source, before))
            lasts = _block(body, (Last(None, None, found.moving),), found)
            found.counts.update(map(_source, lasts))
            return lasts
        case Send() | Receive() | AwaitEvent():      # what comes next waits for what was before, and for what others have done
            found.counts.update(map(_source, before))
            return (Last(None, None, found.moving),)
        case RecordEvent():
            found.counts.update(map(_source, before))
            return before
        case _:
            assert_never(statement)


def _left(lasts: Iterable[Last], what: Repeat | Scope, turns: int | None) -> tuple[Last, ...]:
    """What a loop's body or a scope ends with, seen from outside this turn of it."""
    return tuple(replace(last, count=times(last.count, turns), moved=last.moved | left_behind(what)) for last in lasts)


def _merged(*parts: Iterable[Last]) -> tuple[Last, ...]:
    """Return the lasts of all parts, each task once: as often as it can be in one of them, with everything that may have changed."""
    found: dict[int, Last] = {}
    for last in (last for part in parts for last in part):
        known = found.get(_source(last))
        if known is not None:
            count = None if known.count is None or last.count is None else max(known.count, last.count)
            last = replace(last, count=count, moved=known.moved | last.moved)
        found[_source(last)] = last
    return tuple(found.values())
