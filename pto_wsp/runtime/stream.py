"""The task stream of a plan, enumerated in Python: what the generated orchestrator does, as the oracle does it.

`enumerate_tasks` drives a `Sink` exactly as the C orchestrator drives its own: the same tasks, the same order edges, the same checks
in the same order. A test holds the two streams against each other, task by task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pto_wsp.errors import InternalError
from pto_wsp.plan.handles import HandleUses, TrackedHandle, handle_uses
from pto_wsp.plan.model import (
    Branch,
    Check,
    Choice,
    Item,
    Loop,
    NumberedCheck,
    Sequence,
    SetSlot,
    Sides,
    Submit,
    TaskPlan,
    numbered_checks,
)
from pto_wsp.runtime.binding import Bindings, Number
from pto_wsp.runtime.marks import EdgeReason, MarkFlag, Stall
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class PlacedView:
    """A parameter's view with its numbers: slot of the tensor, offset, valid extents and strides in elements."""

    slot: int
    offset: int
    extent: tuple[int, int]
    stride: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One task: which call of the workload, on what, where, at what price."""

    submit: Submit
    index: tuple[int, ...]
    views: tuple[PlacedView, ...]
    scalars: tuple[Number, ...]
    worker: int
    cost: int
    order: tuple[int, ...]
    after: tuple[int, ...]
    stream: int = 0


@dataclass(frozen=True, slots=True)
class MarkInstance:
    """A node that is no task: it completes `delay` cycles after its predecessors have and its stream has come to it.

    `why` says why it waits for the nodes in `before`; it waits for `order` as structure, and for the latest writers of `reads`.
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


class Sink(Protocol):
    """What the stream is written to; nodes are numbers >= 0."""

    def submit(self, task: TaskInstance) -> int:
        """Take a task and return its node."""
        ...

    def join(self, nodes: tuple[int, ...]) -> int:
        """Return a node that completes when two or more others have."""
        ...

    def mark(self, mark: MarkInstance) -> int:
        """Take a mark and return its node."""
        ...


class CheckFailed(Exception):
    """A check of the plan failed: its number, what it compared, and the loop variables around it."""

    def __init__(self, failed: NumberedCheck, found: int, lower: int, upper: int, loops: tuple[int, ...]) -> None:
        super().__init__(failed.check.kind.value)
        self.failed = failed
        self.found = found
        self.lower = lower
        self.upper = upper
        self.loops = loops


def enumerate_tasks(plan: TaskPlan, bindings: Bindings, sink: Sink) -> None:
    """Make every task of the plan, in program order.

    Raises: CheckFailed at the first check that does not hold.
    """
    _Orchestrator(plan, bindings, sink).run()


class _Orchestrator:
    def __init__(self, plan: TaskPlan, bindings: Bindings, sink: Sink) -> None:
        self.plan, self.bindings, self.sink = plan, bindings, sink
        self.vars: dict[int, int] = {}
        self.slot_values: dict[int, int] = {}
        self.slots = {slot.ref.id: k for k, slot in enumerate(plan.tensors)}
        self.symbols = {symbol.id: bindings.symbols[k] for k, symbol in enumerate(plan.symbols)}
        self.handles: HandleUses = handle_uses(plan)
        self.collected: dict[TrackedHandle, list[int]] = {}
        self.n_tasks = 0
        self.checks = {id(numbered.check): numbered for numbered in numbered_checks(plan)}
        self.leaf: Callable[[s.Scalar], Number] = self._leaf

    def run(self) -> None:
        self._sequence(self.plan.body, -1)

    def _sequence(self, body: Sequence, after: int) -> int:
        for position, item in enumerate(body.items):
            after = self._collecting(body, position, lambda item=item, after=after: self._item(item, after))  # type: ignore[misc]
        return after

    def _collecting(self, body: Sequence | Sides, position: int, run: Callable[[], int]) -> int:
        closing = self.handles.closed_after(body, position)
        for handle in closing:
            self.collected[handle] = []
        result = run()
        for handle in closing:
            self.collected[handle] = [self._join(self.collected[handle], -1)]
        return result

    def _item(self, item: Item, after: int) -> int:
        match item:
            case Submit():
                return self._submit(item, after)
            case Sequence():
                return self._sequence(item, after)
            case Sides(sides):
                ends = [self._collecting(item, k, lambda side=side: self._sequence(side, after))  # type: ignore[misc]
                        for k, side in enumerate(sides)]
                return self._join([end for end in ends if end != after], after)
            case Loop():
                return self._loop(item, after)
            case SetSlot():
                self._check(item.checks)
                self.slot_values[item.slot] = self._int(item.value)
                return after
            case Choice(branches, otherwise):
                return self._sequence(self._chosen(branches, otherwise), after)
            case _:
                raise InternalError(f"{type(item).__name__} in a plan")

    def _loop(self, loop: Loop, after: int) -> int:
        self._check(loop.checks)
        start, stop, step = (int(self._value(bound)) for bound in (loop.start, loop.stop, loop.step))
        ends: list[int] = []
        outer = dict(self.vars)
        for value in range(start, stop, step):
            self.vars[loop.var.id] = value
            if loop.through is not None:
                self._check(loop.through.checks)
                self.vars[loop.through.var.id] = self._int(loop.through.value)
            if loop.ordered:
                after = self._sequence(loop.body, after)
            else:
                ends.append(self._sequence(loop.body, after))
        self.vars = outer
        return after if loop.ordered else self._join([end for end in ends if end != after], after)

    def _chosen(self, branches: tuple[Branch, ...], otherwise: Sequence) -> Sequence:
        """Return the body of the first branch whose condition holds; conditions behind it are not evaluated."""
        for branch in branches:
            self._check(branch.checks)
            if self._value(branch.condition):
                return branch.body
        return otherwise

    def _join(self, nodes: list[int], empty: int) -> int:
        if not self.plan.structure and empty != -1:
            return empty
        distinct = tuple(dict.fromkeys(node for node in nodes if node >= 0))
        return empty if not distinct else distinct[0] if len(distinct) == 1 else self.sink.join(distinct)

    def _submit(self, task: Submit, after: int) -> int:
        self._check(task.checks)
        views = tuple(PlacedView(p.slot, self._int(p.offset), (self._int(p.extent[0]), self._int(p.extent[1])),
                                 (self._int(p.stride[0]), self._int(p.stride[1]))) for p in task.places)
        scalars = tuple(self._scalar(v.value, is_float=v.dtype.is_float) for v in task.scalars)
        behind = tuple(node for handle in self.handles.waits(task.site) for node in self.collected[handle] if node >= 0)
        order = (after,) if self.plan.structure and after >= 0 else ()
        instance = TaskInstance(task, tuple(self._int(i) for i in task.index), views, scalars, self._int(task.worker),
                                self._int(task.cost), order, behind)
        node = self.sink.submit(instance)
        self.n_tasks += 1
        for handle in self.handles.collects(task.site):
            self.collected[handle].append(node)
        return node if self.plan.structure else after

    def _check(self, checks: tuple[Check, ...]) -> None:
        for check in checks:
            value, lower, upper = (self._int(node) for node in (check.value, check.lower, check.upper))
            if not lower <= value <= upper:
                numbered = self.checks[id(check)]
                raise CheckFailed(numbered, value, lower, upper, tuple(self.vars[var.id] for var in numbered.loops))

    def _scalar(self, node: s.Scalar, *, is_float: bool) -> Number:
        return float(self._value(node)) if is_float else self._int(node)

    def _int(self, node: s.Scalar) -> int:
        return int(self._value(node))

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
                read = self.bindings.arrays[self.slots[tensor.id]][tuple(self._int(i) for i in index)]
                number: Number = read.item()
                return number
            case s.TaskIndex():
                return self.n_tasks
            case s.SlotValue(slot):
                return self.slot_values.get(slot, 0)
            case _:
                raise AssertionError(f"{node} in a plan")
