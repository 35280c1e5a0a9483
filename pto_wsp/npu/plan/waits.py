"""Compute the edges that a plan must state, beyond those that the device runtime infers from data.

The runtime orders a task after earlier writers of the elements that it reads or updates. Four kinds of edges remain:

- Write after read (`remembered_reads`): a read is remembered if a later write may touch its elements. A pair of read and write needs
  nothing if no write can follow, if the iterations of the common loops touch disjoint parts, or if data of tasks in between orders the
  write already.
- Write after write (`overwrites`): the runtime looks up earlier writers of IN and INOUT arguments only. An OUT argument that another task
  may have written is passed as INOUT; the kernel's signature stays OUT.
- Program order (`program_order`): statements of a body, and iterations of an ordered loop, follow one another. Only the pairs that data
  does not order already get an edge.
- Handles of `after=`.

If several tasks wait for the same large set of tasks, a task without a kernel joins the set, which saves one edge per pair.

>>> # for t in P.seq(2): for b in P(4): move[b](X[b], Y[b])       Y[b] is written again in the next iteration of t: INOUT
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Loop, Pipeline, Receive, RecordEvent, Send, Sequence, Sides
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.waits import HandleTask, HandleUses, Path, TrackedHandle, tracked_uses
from pto_wsp.npu.plan.model import Descriptor, Launch, NpuBody, NpuChoice, NpuLoop, NpuPipeline, NpuPlan, NpuSides, Passed, Scope, Window
from pto_wsp.npu.plan.places import (
    Moved,
    PlaceMap,
    Position,
    Resource,
    Site,
    Statement,
    TaskItems,
    always_changing,
    changed_on_exit,
    common_loops,
    meets_in_iterations,
    meets_later,
    ordered_by_data,
    overlaps,
    places_of,
    reads_only,
    resource_of,
    side_by_side,
    site_of,
    statements,
    surely_submits,
    times,
    token_loop,
    total,
    trip_count,
)
from pto_wsp.values import dataclass


@dataclass(slots=True)
class RememberedReads:
    """The reads to remember and the writes that wait for them, by launch."""

    reads: dict[Site, tuple[Resource, ...]] = field(default_factory=dict)
    writes: dict[Site, tuple[Resource, ...]] = field(default_factory=dict)
    tensors: dict[Resource, None] = field(default_factory=dict)          # tensors of the reads, in order

    def waits(self, launch: Launch) -> tuple[Resource, ...]:
        """Return the tensors whose remembered readers a launch waits for."""
        return self.writes.get(site_of(launch), ())

    def remembered(self, launch: Launch) -> tuple[Resource, ...]:
        """Return the tensors that a launch is remembered as a reader of."""
        return self.reads.get(site_of(launch), ())


def remembered_reads(plan: NpuPlan) -> RememberedReads:
    """Return the reads of a plan that later writes must wait for explicitly."""
    known = places_of(plan)
    found = RememberedReads()
    reads = [(place, argument) for place in known.places for argument in place.launch.arguments if reads_only(argument, place.launch)]
    writes = [(place, argument) for place in known.places for argument in place.launch.arguments if argument.role.writes]
    for reader, read in reads:
        resource = resource_of(read)
        needed = False
        for writer, written in writes:
            if resource_of(written) == resource and not _is_harmless(reader, read, writer, written, known):
                _add(found.writes, writer.launch, resource)
                needed = True
        if needed:
            _add(found.reads, reader.launch, resource)
            found.tensors[resource] = None
    return found


def _add(table: dict[Site, tuple[Resource, ...]], launch: Launch, resource: Resource) -> None:
    known = table.get(site_of(launch), ())
    table[site_of(launch)] = known if resource in known else (*known, resource)


def _is_harmless(reader: Position, read: Descriptor | Passed, writer: Position, written: Descriptor | Passed, known: PlaceMap) -> bool:
    """Return whether no instance of `writer` after an instance of `reader` needs an explicit edge."""
    if not meets_later(reader, read, writer, written, known):
        return True
    return not meets_in_iterations(reader, read, writer, written, known) and _is_ordered(reader, writer, known,
                                                                                          common_loops(reader, writer))


def _is_ordered(reader: Position, writer: Position, known: PlaceMap, common: tuple[NpuLoop, ...]) -> bool:
    """Tell whether data orders all runs of `writer` behind all runs of `reader`, in one iteration of the loops around both."""
    reached = [reader]
    for place in known.places[reader.position + 1:writer.position + 1]:
        if place is not writer and (len(place.loops) != len(common) or not place.ways <= reader.ways | writer.ways):
            continue      # the place may have no instance
        if place.process not in (reader.process, writer.process) or side_by_side(place, reader) or side_by_side(place, writer):
            continue      # the place may run before the reader, or after the writer
        if not all(mine is other for mine, other in zip(place.loops, common, strict=False)):
            continue
        if any(_data_edge(before, place, len(common), known.moving) for before in reached):
            if place is writer:
                return True
            reached.append(place)
    return False


def _data_edge(first: Position, then: Position, n_common: int, moving: Moved) -> bool:
    moved = moving.union(*(changed_on_exit(loop) for place in (first, then) for loop in place.loops[n_common:]))
    return any(one.role.writes and overlaps(one, other, moved) and _is_something(one) and _is_something(other)
               for one in first.launch.arguments for other in then.launch.arguments)


def _is_something(argument: Descriptor | Passed) -> bool:
    """Return whether an argument surely has elements: the runtime infers no edge from an empty one."""
    return isinstance(argument, Passed) or all(
        isinstance(extent, s.DimOf) or (isinstance(extent, s.Const) and extent.value > 0)
        for step in argument.steps if isinstance(step, Window) for extent in step.shape)


Overwrites: TypeAlias = frozenset[tuple[Site, int]]      # launches, and the position of an argument


def overwrites(plan: NpuPlan) -> Overwrites:
    """Return the OUT arguments of a plan that may touch elements which another task has written before."""
    known = places_of(plan)
    writes: dict[Resource, list[tuple[Position, Descriptor | Passed]]] = {}
    for place in known.places:
        for argument in place.launch.arguments:
            if argument.role.writes:
                writes.setdefault(resource_of(argument), []).append((place, argument))
    return frozenset((site_of(then.launch), position) for then in known.places for position, late in enumerate(then.launch.arguments)
                     if late.role is Role.OUT and any(meets_later(first, early, then, late, known)
                                                      for first, early in writes[resource_of(late)]))


# -- program order ---------------------------------------------------------------------------------


UNKNOWN_TASKS = -1


@dataclass(frozen=True, slots=True)
class Last:
    """A task that may be the last one so far, with its count and the values that may have changed since; `task` None: a wait for tokens."""

    task: TaskItems | None
    count: int | None
    moved: Moved


@dataclass(slots=True)
class ProgramOrder:
    """By source: tasks that wait for the statement before them (with the largest number waited for), and tasks waited for."""

    waits: dict[int, int | None] = field(default_factory=dict)
    counts: set[int] = field(default_factory=set)
    moving: Moved = frozenset()     # what may change between any two tasks
    ends: dict[tuple[object, ...], tuple[NpuBody, tuple[Last, ...]]] = field(default_factory=dict)     # by block and lasts before it


def program_order(plan: NpuPlan) -> ProgramOrder:
    """Return the edges to state for the plan's structure; nothing if the plan does not ask for structure."""
    found = ProgramOrder(moving=always_changing(plan))
    if plan.structure:
        _block(plan.body, (), found)
    return found


def last_tasks(block: NpuBody) -> frozenset[int]:
    """Return the sources of the tasks that a block may end with, UNKNOWN_TASKS among them where it ends with what tokens wait for."""
    return frozenset(_source(last) for last in _block(block, (), ProgramOrder()))


def _source(last: Last) -> int:
    return UNKNOWN_TASKS if last.task is None else last.task.source


def _block(block: NpuBody, before: tuple[Last, ...], found: ProgramOrder) -> tuple[Last, ...]:
    """Return the tasks that a block may end with. An ordered loop asks twice for its body, so that nested loops would ask 2^depth times:
    a block is worked out once for equal `before`."""
    key = (id(block), *((_source(last), last.count, last.moved) for last in before))
    if key not in found.ends:
        found.ends[key] = block, _ends(block, before, found)      # keeping the block alive keeps its id unique
    return found.ends[key][1]


def _ends(block: NpuBody, before: tuple[Last, ...], found: ProgramOrder) -> tuple[Last, ...]:
    for statement in statements(block):
        behind = _statement_of(statement, before, found)
        replaces = surely_submits(statement) or isinstance(statement, Send | Receive | AwaitEvent)
        before = behind if replaces else _union(behind, before)
    return before


def _statement_of(statement: Statement, before: tuple[Last, ...], found: ProgramOrder) -> tuple[Last, ...]:
    match statement:
        case TaskItems(source):
            if not all(last.task is not None and ordered_by_data(last.task, statement, last.moved) for last in before):
                bound = total(last.count for last in before)
                known = found.waits.get(source, 0)
                found.waits[source] = None if bound is None or known is None else max(bound, known)
                found.counts.update(map(_source, before))
            return (Last(statement, statement.count, found.moving),)
        case Loop(ordered=ordered, body=body):
            if not ordered:
                return _seen_from_outside(_block(body, before, found), statement, trip_count(statement))
            first = _seen_from_outside(_block(body, before, found), statement, 1)
            # the end of an iteration stands before the next iteration
            return _union(first, _seen_from_outside(_block(body, first, found), statement, 1))
        case Choice():
            return _union(*(_block(body, before, found) for body in statement.bodies))
        case Sides(sides):
            return _union(*(_block(side, before, found) for side in sides))
        case Scope():
            return _seen_from_outside(_block(statement, before, found), statement, 1)
        case Sequence():
            return _block(statement, before, found)
        case Pipeline(stages):
            return _union(*(tuple(replace(last, count=times(last.count, stage.replicas)) for last in _block(stage.body, before, found))
                             for stage in stages))
        case Consume(body=body):
            found.counts.update(map(_source, before))
            lasts = _block(body, (Last(None, None, found.moving),), found)
            found.counts.update(map(_source, lasts))
            return lasts
        case Send() | Receive() | AwaitEvent():      # a token orders the next statement after this one and after other processes
            found.counts.update(map(_source, before))
            return (Last(None, None, found.moving),)
        case RecordEvent():
            found.counts.update(map(_source, before))
            return before
        case _:        # it submits no task, and no other process waits for it
            return before


def _seen_from_outside(lasts: Iterable[Last], what: NpuLoop | Scope, n_iterations: int | None) -> tuple[Last, ...]:
    """What a loop's body or a scope ends with, seen from outside this iteration of it."""
    return tuple(replace(last, count=times(last.count, n_iterations), moved=last.moved | changed_on_exit(what)) for last in lasts)


def _union(*parts: Iterable[Last]) -> tuple[Last, ...]:
    """Return the union of lasts by task, with the largest count and the union of changed values."""
    found: dict[int, Last] = {}
    for last in (last for part in parts for last in part):
        known = found.get(_source(last))
        if known is not None:
            count = None if known.count is None or last.count is None else max(known.count, last.count)
            last = replace(last, count=count, moved=known.moved | last.moved)
        found[_source(last)] = last
    return tuple(found.values())


# -- all edges -------------------------------------------------------------------------------------


WORTH_JOINING = 16     # kWorthJoining in pto_wsp_abi.h


@dataclass(frozen=True, slots=True)
class Waits:
    """All edges that a plan states: program order, handles, remembered reads; and `overwrites`, the OUT arguments passed as INOUT."""

    order: ProgramOrder
    handles: HandleUses
    reads: RememberedReads
    overwrites: Overwrites
    sizes: dict[TrackedHandle, int | None] = field(default_factory=dict)      # the largest number of tasks in a collection
    shared: frozenset[TrackedHandle] = frozenset()                            # collections that several tasks may wait for

    def tells(self, launch: Launch) -> bool:
        """Return whether a launch has stated edges."""
        return launch.source in self.order.waits or bool(self.handles.waits(launch.source) or self.reads.waits(launch))

    def looks_up(self, launch: Launch, argument: int) -> bool:
        """Return whether an argument is passed as INOUT, so that the runtime looks up its earlier writers."""
        return (site_of(launch), argument) in self.overwrites

    def is_named(self, launch: Launch) -> bool:
        """Return whether a stated edge may point to a launch."""
        return launch.source in self.order.counts or bool(self.handles.collects(launch.source) or self.reads.remembered(launch))


def waits_of(plan: NpuPlan) -> Waits:
    """Return the edges that a plan states."""
    tasks: list[HandleTask] = []
    bodies: dict[int, int] = {}
    loops_of: dict[int, tuple[NpuLoop, ...]] = {}          # by source
    tasks_of: dict[int, TaskItems] = {}                        # by handle
    opened: dict[int, tuple[NpuLoop, ...]] = {}            # by the number of a body: the loops around it

    def walk(body: NpuBody | NpuChoice | NpuSides | NpuPipeline, loops: tuple[NpuLoop, ...], path: Path) -> None:
        number = bodies.setdefault(id(body), len(bodies))
        opened[number] = loops
        match body:
            case Sequence():
                parts: tuple[Statement, ...] = statements(body)
            case Choice():
                parts = body.bodies
            case Sides(sides):
                parts = sides
            case Pipeline(stages):
                parts = tuple(stage.body for stage in stages)
        for position, part in enumerate(parts):
            here = (*path, (number, position))
            match part:
                case TaskItems(source):
                    first = part.launches[0]
                    tasks.append(HandleTask(source, first.handle, first.after, here))
                    loops_of[source], tasks_of[first.handle] = loops, part
                case Loop(body=inner):
                    walk(inner, (*loops, part), here)
                case Consume(body=inner):
                    walk(inner, (*loops, token_loop(part)), here)
                case Sequence() | Choice() | Sides() | Pipeline():
                    walk(part, loops, here)
                case _:      # a token waits for the statement before it
                    pass

    walk(plan.body, (), ())
    handles = tracked_uses(tasks, bodies)
    sizes: dict[TrackedHandle, int | None] = {}
    shared: set[TrackedHandle] = set()
    for task in tasks:
        for handle in handles.waits(task.site):
            maker = tasks_of[handle.handle]
            if handle in sizes or len(loops_of[task.site]) > len(opened[handle.body]):
                shared.add(handle)
            sizes[handle] = times(maker.count, *map(trip_count, loops_of[maker.source][len(opened[handle.body]):]))
    return Waits(program_order(plan), handles, remembered_reads(plan), overwrites(plan), sizes,
                 frozenset(shared))
