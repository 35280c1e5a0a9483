"""Enumerate the task stream of a plan in Python: the oracle's counterpart of the generated C orchestrator.

`enumerate_tasks` (pipelines.py) drives a `Sink` exactly as the C orchestrator drives its own: the same tasks, order edges, waits and
checks, in the same order. A test compares both streams task by task.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Protocol

from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Choice, Do, Fresh, Loop, Sequence, SetSlot, Sides
from pto_wsp.ir.plan import Body, Check, Item, PlanBranch, PlanLoop, PlanSides, Precondition, Submit, TaskPlan
from pto_wsp.ir.plan_walk import NumberedCheck, numbered_checks
from pto_wsp.ir.waits import HandleUses, Reads, Step, TrackedHandle, handle_uses
from pto_wsp.run.bound import Array, Bindings, Number
from pto_wsp.run.record import EdgeReason, MarkFlag, Stall
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class PlacedView:
    """A parameter's view with concrete numbers: tensor slot, offset, valid extents and strides in elements.

    `fresh`: the number of a tensor allocated in a body, counted from 0; None for a bound tensor.
    """

    slot: int
    offset: int
    extent: tuple[int, int]
    stride: tuple[int, int]
    fresh: int | None = None


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One task: its call in the workload, arguments, placement and cost.

    `rank`: of a mesh, that it runs on; `source`: the rank that a copy reads from; -1 where there is none.
    """

    submit: Submit
    index: tuple[int, ...]
    views: tuple[PlacedView, ...]
    scalars: tuple[Number, ...]
    worker: int
    cost: int
    order: tuple[int, ...]
    after: tuple[int, ...]
    stream: int = 0
    lane: int = 0
    pool: int = 0
    priority: int = 0
    position: int = 0
    traffic: int = 0
    rank: int = -1
    source: int = -1


@dataclass(frozen=True, slots=True)
class MarkInstance:
    """A node other than a task: it completes `delay` cycles after its predecessors, once its stream has reached it.

    `why`: the reason for waiting for the nodes in `before`. The mark also waits for `order` (structure), and for the last writers of
    `reads`.
    """

    stream: int = 0
    flags: MarkFlag = MarkFlag(0)
    why: EdgeReason = EdgeReason(0)
    stall: Stall = Stall.NONE
    site: int = -1
    before: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    reads: tuple[PlacedView, ...] = ()
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """A body allocated a tensor; tasks refer to it by `fresh`."""

    slot: int
    fresh: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Released:
    """The tensor is freed: no later task uses it."""

    fresh: int


class Sink(Protocol):
    """The receiver of the stream; nodes are numbers >= 0."""

    def submit(self, task: TaskInstance) -> int:
        """Add a task and return its node."""
        ...

    def join(self, nodes: tuple[int, ...]) -> int:
        """Return a node that completes when two or more nodes have."""
        ...

    def mark(self, mark: MarkInstance) -> int:
        """Add a mark and return its node: at once, or with the flag NOW after all its predecessors have run."""
        ...

    def make(self, made: Made) -> None:
        """Add a tensor allocated in a body."""
        ...

    def release(self, released: Released) -> None:
        """Free a tensor at the end of its body."""
        ...

    def tick(self) -> None:
        """Continue a loop.

        Raises: KeyboardInterrupt if the run is cancelled.
        """
        ...

    def array_of(self, fresh: int) -> Array:
        """Return the memory of a tensor allocated in a body, after the tasks on it so far have run."""
        ...


class CheckFailed(Exception):
    """A failed check of the plan: its number, the compared values, and the loop variables around."""

    def __init__(self, failed: NumberedCheck, found: int, lower: int, upper: int, loops: tuple[int, ...]) -> None:
        super().__init__(failed.check.kind.value)
        self.failed = failed
        self.found = found
        self.lower = lower
        self.upper = upper
        self.loops = loops


@dataclass(slots=True)
class Counts:
    """Counters shared by all streams of a run."""

    n_tasks: int = 0
    n_fresh: int = 0
    n_steps: int = 0      # sends, receives, records and ends of processes


class Orchestrator:
    """Writes the main program; `pipelines.py` extends it to processes."""

    stream = 0
    replica = 0
    everything: list[int] | None = None     # tasks of the stream, for an event that follows all of them

    def __init__(self, plan: TaskPlan, bindings: Bindings, sink: Sink) -> None:
        self.plan, self.bindings, self.sink = plan, bindings, sink
        self.vars: dict[int, int] = {}
        self.slot_values: dict[int, int] = {}
        self.slots = {slot.ref.id: k for k, slot in enumerate(plan.tensors)}
        self.symbols = {symbol.id: bindings.symbols[k] for k, symbol in enumerate(plan.symbols)}
        self.handles: HandleUses = handle_uses(plan)
        self.collected: MutableMapping[TrackedHandle, list[int]] = {}
        self.counts = Counts()
        self.checks = {id(numbered.check): numbered for numbered in numbered_checks(plan)}
        self.leaf: Callable[[s.Scalar], Number] = self._leaf
        self.reads = Reads.of(plan)
        self.fresh: dict[int, int] = {}      # by slot: the number of the tensor that is there now
        self.waited = -1     # the last wait: tasks made afterwards are made of what was read
        self.steps: dict[int, tuple[Step, ...]] = {}      # by id() of what comes before a node of the plan

    def whole(self) -> None:
        """Write the whole stream."""
        self._sequence(self.plan.body, -1)

    def _sequence(self, body: Body, after: int) -> int:
        for position, item in enumerate(body.items):
            after = self._collecting(body, position, lambda item=item, after=after: self._item(item, after))  # type: ignore[misc]
        for item in body.items:
            if isinstance(item, Fresh):
                self.sink.release(Released(self.fresh.pop(item.tensor)))
        return after

    def _collecting(self, body: Body | PlanSides, position: int, run: Callable[[], int]) -> int:
        closing = self.handles.closed_after(body, position)
        for handle in closing:
            self.collected[handle] = []
        result = run()
        for handle in closing:
            self.collected[handle] = [self._join(self.collected[handle], -1)]
        return result

    def _item(self, item: Item, after: int) -> int:
        match item:
            case Do(task):
                return self._submit(task, after)
            case Sequence():
                return self._sequence(item, after)
            case Sides(sides):
                ends = [self._collecting(item, k, lambda side=side: self._sequence(side, after))  # type: ignore[misc]
                        for k, side in enumerate(sides)]
                return self._join([end for end in ends if end != after], after)
            case Loop():
                return self._loop(item, after)
            case SetSlot():
                self._ready(item.note, after)
                self.slot_values[item.slot] = self._int(item.value)
                return after
            case Choice(branches, otherwise):
                return self._sequence(self._chosen(branches, otherwise, after), after)
            case Fresh(slot, sizes=sizes):
                self._ready(item.note, after)
                self.sink.make(Made(slot, self.counts.n_fresh, tuple(map(self._int, sizes)) or self.plan.tensors[slot].ref.shape))
                self.fresh[slot] = self.counts.n_fresh
                self.counts.n_fresh += 1
                return after
            case _:
                raise InternalError(f"{type(item).__name__} in a plan")

    def _loop(self, loop: PlanLoop, after: int) -> int:
        ends: list[int] = []
        outer = dict(self.vars)
        for value in self._bounds(loop, after):
            self._enter(loop, value, after)
            if loop.ordered:
                after = self._sequence(loop.body, after)
            else:
                end = self._sequence(loop.body, after)
                if end != after:
                    ends.append(end)
        self.vars = outer
        return after if loop.ordered else self._join(ends, after)

    def _bounds(self, loop: PlanLoop, after: int) -> range:
        """Return the values of a loop's variable."""
        self._ready(loop.note, after)
        start, stop, step = (int(self._value(bound)) for bound in (loop.start, loop.stop, loop.step))
        return range(start, stop, step)

    def _enter(self, loop: PlanLoop, value: int, after: int) -> None:
        """Begin an iteration of a loop: set its variable, and the one that it leads to."""
        self.sink.tick()
        self.vars[loop.var.id] = value
        if loop.through is not None:
            self._ready(loop.through.note, after)
            self.vars[loop.through.var.id] = self._int(loop.through.value)

    def _chosen(self, branches: tuple[PlanBranch, ...], otherwise: Body, after: int) -> Body:
        """Return the body of the first branch whose condition holds; conditions behind it are not evaluated."""
        for branch in branches:
            self._ready(branch.note, after)
            if self._value(branch.condition):
                return branch.body
        return otherwise

    def _join(self, nodes: list[int], empty: int) -> int:
        if not self.plan.structure and empty != -1:
            return empty
        distinct = tuple(dict.fromkeys(node for node in nodes if node >= 0))
        return empty if not distinct else distinct[0] if len(distinct) == 1 else self.sink.join(distinct)

    def _submit(self, task: Submit, after: int) -> int:
        behind = tuple(node for handle in self.handles.waits(task.site) for node in self.collected[handle] if node >= 0)
        self._ready(task.note, after, behind)
        views = tuple(PlacedView(p.slot, self._int(p.offset), (self._int(p.extent[0]), self._int(p.extent[1])),
                                 (self._int(p.stride[0]), self._int(p.stride[1])), self.fresh.get(p.slot)) for p in task.places)
        scalars = tuple(self._scalar(v.value, is_float=v.dtype.is_float) for v in task.scalars)
        order = tuple(node for node in (after if self.plan.structure else -1, self.waited) if node >= 0)
        instance = TaskInstance(task, tuple(self._int(i) for i in task.index), views, scalars, self._int(task.worker),
                                self._int(task.cost), order, behind, self.stream, self._int(task.lane), self._int(task.pool),
                                self._int(task.priority), self._int(task.position), self._int(task.traffic),
                                -1 if task.on is None else self._int(task.on.rank),
                                -1 if task.on is None or task.on.source is None else self._int(task.on.source))
        node = self.sink.submit(instance)
        if self.everything is not None:
            self.everything.append(node)
        self.counts.n_tasks += 1
        for handle in self.handles.collects(task.site):
            self.collected[handle].append(node)
        return node if self.plan.structure else after

    def _ready(self, note: Precondition, after: int, behind: tuple[int, ...] = ()) -> None:
        """Make a node's scalars fit to be evaluated: check them, and wait for what tasks write."""
        steps = self.steps.get(id(note))
        if steps is None:
            steps = self.steps[id(note)] = self.reads.preparation(note)
        for step in steps:
            if isinstance(step, Check):
                self._check(step)
            else:
                views = tuple(PlacedView(read.slot, self._int(read.offset), (1, 1), (1, 1), self.fresh.get(read.slot)) for read in step)
                order = (*((after,) if self.plan.structure and after >= 0 else ()), *behind)
                self.waited = self.sink.mark(MarkInstance(self.stream, MarkFlag.BLOCKS | MarkFlag.NOW, EdgeReason.READ, Stall.READ,
                                                          order=order, reads=views))

    def _check(self, check: Check) -> None:
        value, lower, upper = (self._int(node) for node in (check.value, check.lower, check.upper))
        if not lower <= value <= upper:
            numbered = self.checks[id(check)]
            raise CheckFailed(numbered, value, lower, upper, tuple(self.vars[var.id] for var in numbered.loops))

    def _scalar(self, node: s.Scalar, *, is_float: bool) -> Number:
        return float(self._value(node)) if is_float else int(self._value(node))

    def _int(self, node: s.Scalar) -> int:
        """Return an integer wrapped to 64 bits, as a C orchestrator's variable."""
        return s.wrap_i64(int(self._value(node)))

    def _value(self, node: s.Scalar) -> Number:
        return s.evaluate(node, self.leaf)

    def _leaf(self, node: s.Scalar) -> Number:
        match node:
            case s.Var(_, var):
                return self.vars[var]
            case s.SymbolRef(_, symbol):
                return self.symbols[symbol]
            case s.DimOf(tensor, dim):
                return int(self.bindings.arrays[self.slots[tensor.id]].shape[dim])
            case s.StrideOf(tensor, dim):
                array = self.bindings.arrays[self.slots[tensor.id]]
                return int(array.strides[dim]) // array.itemsize
            case s.Element(tensor, index):
                slot = self.slots[tensor.id]
                array = self.sink.array_of(self.fresh[slot]) if slot in self.fresh else self.bindings.arrays[slot]
                number: Number = array[tuple(self._int(i) for i in index)].item()
                return number
            case s.TaskIndex():
                return self.counts.n_tasks
            case s.CalendarEntry(column):
                return self.plan.calendar[self.counts.n_tasks][column]
            case s.ReplicaIndex():
                return self.replica
            case s.SlotValue(slot):
                return self.slot_values.get(slot, 0)
            case _:
                raise AssertionError(f"{node} in a plan")
