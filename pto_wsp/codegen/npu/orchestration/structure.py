"""Lower the body of a plan to C++: loops stay loops, conditions stay conditions.

Program order, where it has to be told, travels in a list of ids, `after`: what the next statement waits for. The turns of an unordered
loop all start from it, and what they end with takes its place behind the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import partial
from typing import assert_never

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.npu.orchestration.launches import LaunchLowering, call, extents_array, is_many, runtime_dtype
from pto_wsp.codegen.npu.orchestration.scalars import unless_within
from pto_wsp.errors import InternalError
from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send, SetSlot
from pto_wsp.plan.npu.between_tasks import allocated_by_launches
from pto_wsp.plan.npu.edges.order import UNKNOWN_TASKS, last_tasks
from pto_wsp.plan.npu.edges.places import IntermediateOf, Resource, TensorOf
from pto_wsp.plan.npu.edges.statements import Statement, Task, n_launches, statements, surely_submits
from pto_wsp.plan.npu.late import Checked
from pto_wsp.plan.npu.model import Block, Communication, Drain, Fork, Launch, Network, NpuItem, Repeat, Scope, Unordered
from pto_wsp.plan.npu.walk import communicates, items_of, launches_of
from pto_wsp.plan.waits.handles import TrackedHandle
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(slots=True)
class BodyLowering(LaunchLowering):
    """Lowers a plan's body in the scope of its function. `leave` ends it."""

    leave: c.Return = field(default_factory=c.Return)

    def whole(self) -> tuple[c.Stmt, ...]:
        """Return the statements of the body."""
        plan = self.scope.plan
        after = self.scope.names.take("after") if self.waits.order.waits else None
        body = tuple(self._block(plan.body, after))
        opening: list[c.Stmt] = []
        for resource in self.waits.reads.tensors:
            if isinstance(resource, TensorOf) and not plan.tensors[resource.slot].fresh:
                opening.append(self._list_of(resource))
        if after is not None:
            opening.append(self._ids(after))
        return (*opening, *body)

    def _block(self, block: Block, after: str | None) -> Iterator[c.Stmt]:
        parts = statements(block)
        for position, statement in enumerate(parts):
            for handle in self.waits.handles.closed_after(block, position):
                yield self._opened(handle)
            yield from self._statement(statement, after, alone=block is self.scope.plan.body and len(parts) == 1)

    def _statement(self, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
        match statement:
            case Task():
                yield from self._task(statement, after, alone=alone)
            case Repeat():
                yield from self._repeat(statement, after)
            case Fork():
                for position in range(len(statement.bodies)):
                    for handle in self.waits.handles.closed_after(statement, position):
                        yield self._opened(handle)
                yield from self._ways(statement, 0, after)
            case SetSlot():
                yield from self._set(statement)
            case Scope(body=body):
                yield from self._scope(statement, partial(self._block, body, after), implicit=alone)
            case Block():
                yield from self._block(statement, after)
            case Unordered():
                yield from self._sides(statement, after)
            case Network() | Drain() | Send() | Receive() | RecordEvent() | AwaitEvent():
                yield from self._communicate(statement, after)
            case _:
                assert_never(statement)

    def _communicate(self, statement: Network | Drain | Communication, after: str | None) -> Iterator[c.Stmt]:
        """A pipeline, or what a process in it does with channels and events."""
        raise InternalError(f"{type(statement).__name__} without a lowering of pipelines")

    def _opened(self, handle: TrackedHandle) -> c.Stmt:
        """The list of what a handle will stand for."""
        self.handles[handle] = self._list_name(handle.variable)
        return self._ids(self.handles[handle])

    def _repeat(self, loop: Repeat, after: str | None) -> Iterator[c.Stmt]:
        yield c.Comment(f"{loop.span.short}: for {(loop.lead or loop).var.name}")
        yield from self._checked(loop)
        yield from self._joined(after, loop.body)
        if after is None or not self._is_named(loop.body):
            yield from self._for(loop, partial(self._block, loop.body, after), {after})
        elif loop.ordered:
            yield from self._for(loop, partial(self._block, loop.body, after), set())
        else:
            ends = self._list_name("ends") if self._is_waited_for(loop.body) else ""
            if ends:
                yield self._ids(ends)
            yield from self._for(loop, partial(self._turn, loop.body, after, ends), {after})
            if ends:
                yield self._replaced(after, ends)

    def _ways(self, fork: Fork, position: int, after: str | None) -> Iterator[c.Stmt]:
        """The ways of a fork from one on. What comes next in each waits for `after`, which holds then what the way has ended with."""
        if position == len(fork.ways):
            yield from self._block(fork.otherwise, after)
            return
        way = fork.ways[position]
        yield c.Comment(f"{way.span.short}: {'elif' if position else 'when'}")
        yield from self._checked(way)
        asked = self.scope.scalar(way.condition)
        names, short = self.scope.names, self.short
        bodies: list[tuple[c.Stmt, ...]] = []
        known: list[set[str]] = []
        for part in (self._block(way.body, after), self._ways(fork, position + 1, after)):
            self.scope.names, self.short = names.inner(), set(short)
            bodies.append(tuple(part))
            known.append(self.short)
        self.scope.names, self.short = names, known[0] & known[1]
        yield c.If(asked, bodies[0], bodies[1])

    def _set(self, item: SetSlot) -> Iterator[c.Stmt]:
        yield from self._checked(item)
        yield c.Assign(self.scope.slot(item.slot), self.scope.scalar(item.value))

    def _checked(self, item: Checked) -> Iterator[c.Stmt]:
        """Checks of what tasks compute: where one does not hold, nothing more is submitted."""
        for check in self.late.checks_of(item):
            yield unless_within(check, self.scope, self.leave, "no more tasks are submitted")

    def _sides(self, whole: Unordered, after: str | None) -> Iterator[c.Stmt]:
        for side in whole.sides:
            yield from self._joined(after, side)
        ends = self._list_name("ends") if after is not None and any(map(self._is_waited_for, whole.sides)) else ""
        if ends:
            yield self._ids(ends)
        for position, side in enumerate(whole.sides):
            for handle in self.waits.handles.closed_after(whole, position):
                yield self._opened(handle)
            yield from self._block(side, None) if after is None else self._turn(side, after, ends)
        if ends and after is not None:
            yield self._replaced(after, ends)

    def _turn(self, body: Block, after: str, ends: str) -> Iterator[c.Stmt]:
        """One of several parts without an order: it starts from `after` and adds what it ends with to `ends`, where that is asked for."""
        if not self._is_named(body):
            yield from self._block(body, after)
            return
        parts = statements(body)
        if len(parts) == 1 and isinstance(parts[0], Task) and not self.waits.handles.closed_after(body, 0):
            yield from self._task(parts[0], after, alone=False, ends=ends)
            return
        inner = self._list_name("after")
        yield self._ids(inner, after)
        if after in self.short:
            self.short.add(inner)
        yield from self._block(body, inner)
        if ends:
            added = call(f"{ends}.add", c.Name(inner))
            yield added if surely_submits(body) else c.If(c.Prefix("!", c.Call(f"{inner}.is", (c.Name(after),))), (added,))

    def _replaced(self, after: str, ends: str) -> c.Stmt:
        """What came last is what comes next waits for; where nothing came, it waits as before."""
        self.short.discard(after)
        return c.If(c.Infix(">", c.Call(f"{ends}.size", ()), c.Int(0)), (c.Assign(c.Name(after), c.Name(ends)),))

    def _joined(self, after: str | None, body: Block) -> Iterator[c.Stmt]:
        """Several tasks wait for the same others: many of those are joined once, before."""
        bounds = [self.waits.order.waits.get(launch.source, 0) for launch in launches_of(body)]
        if after is not None and any(map(is_many, bounds)):
            yield from self._join(after)

    def _is_waited_for(self, body: Block) -> bool:
        """Tell whether something is told to wait for what a body ends with."""
        lasts = last_tasks(body)
        return UNKNOWN_TASKS in lasts or not self.waits.order.counts.isdisjoint(lasts)

    def _is_named(self, body: Block) -> bool:
        """Tell whether something is told to wait for anything in a body."""
        return communicates(body) or any(launch.source in self.waits.order.counts for launch in launches_of(body))

    def _for(self, loop: Repeat, body: Callable[[], Iterator[c.Stmt]], unchanged: AbstractSet[str | None]) -> Iterator[c.Stmt]:
        """A loop. `unchanged`: lists that its turns leave alone, of those that this function knows about."""
        names, short = self.scope.names, self.short
        start = self.scope.scalar(loop.start)
        (before, stop), (also, step) = (self._once(node, f"{c.c_ident(loop.var.name)}_{what}")
                                        for node, what in ((loop.stop, "stop"), (loop.step, "step")))
        yield from (*before, *also)
        self.scope.names, self.short = names.inner(), {name for name in short if name in unchanged}
        type_, name = self._counter(loop.var)
        self.depth += 1
        lead = () if loop.lead is None else tuple(self._checked(loop.lead))
        inner = tuple(body())
        if loop.lead is not None:
            lead = (*lead, *self._let(loop.lead.var, loop.lead.value))
            inner = (*lead, *inner)
        self.depth -= 1
        self.scope.names, self.short = names, {name for name in short if name in unchanged}
        yield c.For(type_, name, start, stop, step, inner, wraps=c.may_wrap(stop, step))

    def _counter(self, var: s.Var) -> tuple[str, str]:
        """A loop's variable: its type, empty where it is declared already, and its name."""
        return "int64_t", self.scope.loop_variable(var)

    def _once(self, node: s.Scalar, name: str) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """A bound of a loop, and what is done before the loop to have it."""
        return self.scope.once(node, name)

    def _let(self, var: s.Var, value: s.Scalar) -> Iterator[c.Stmt]:
        """Where a position of a sparse row leads to, in each turn."""
        return self.scope.let(var, value)

    def _scope(self, scope: Scope, body: Callable[[], Iterator[c.Stmt]], *, implicit: bool) -> Iterator[c.Stmt]:
        """A scope of the runtime, where anything is allocated in it that does not live to the end anyway."""
        self.created.update({own.id: (own, self.depth) for own in scope.intermediates})
        resources = (*(IntermediateOf(own.id) for own in scope.intermediates),
                     *(TensorOf(slot) for slot in scope.tensors if self.scope.plan.tensors[slot].fresh))
        opening = tuple(self._list_of(resource) for resource in resources if resource in self.waits.reads.tensors)
        if implicit or not (scope.intermediates or scope.tensors):
            yield from (*self._allocated(scope), *opening, *body())
            return
        names = self.scope.names
        self.scope.names = names.inner()
        yield c.Block((*self._allocated(scope), *opening, *body()), "PTO_WSP_SCOPE")
        self.scope.names = names

    def _list_of(self, resource: Resource) -> c.Stmt:
        """The list of those who have read a tensor since it was written: with their places, but for a whole one of the runtime's."""
        match resource:
            case IntermediateOf():
                return self._ids(self._readers(resource))
            case TensorOf(slot):
                self.scope.features.add("PTO_WSP_EDGES")
                return c.Construct(f"pto_wsp::Readers<{self.scope.plan.tensors[slot].ref.rank}>", self._readers(resource))

    def _allocated(self, scope: Scope) -> Iterator[c.Stmt]:
        """Allocate those of the workload's intermediate tensors that no launch is given new."""
        plan, known = self.scope.plan, allocated_by_launches(scope.body)
        for slot in scope.tensors:
            if slot in known:
                continue
            self.scope.features.add("PTO_WSP_NEW_TENSORS")
            ref, tensor = plan.tensors[slot].ref, self.scope.tensor(slot)
            shape, made = (c.Name(self.scope.names.take(f"{tensor.text}_{what}")) for what in ("shape", "made"))
            yield c.Comment(f"{ref.dtype} {list(ref.shape)}, from task to task")
            yield extents_array(shape, map(c.Int, ref.shape))
            yield c.Declare("auto", made.text, c.Call("pto_wsp::allocate", (shape, runtime_dtype(ref.dtype))))
            yield c.Declare("const pto_wsp::Tensor &", tensor.text, c.Call(f"{made.text}.get_ref", (c.Int(0),)))

    # ---- tasks ----

    def _task(self, task: Task, after: str | None, *, alone: bool, ends: str = "") -> Iterator[c.Stmt]:
        """A task; where somebody waits for it, its ids are added to `ends`, or take the place of those in `after`."""
        first = task.launches[0]
        kernel = self.scope.plan.kernels[first.kernel].kernel.name
        yield c.Comment(f"{first.span.short}: {kernel}[{', '.join(first.labels)}]")
        for launch in task.launches:
            yield from self._checked(launch)
        yield from self._held(task)
        if ends or after is None or task.source not in self.waits.order.counts:
            yield from self._parts(task.items, after, ends if task.source in self.waits.order.counts else "", alone=alone)
        elif len(task.items) == 1 and isinstance(task.items[0], Launch):
            yield from self._launch(task.items[0], after, after, replaces=True)
        else:
            own = self._list_name("ends")
            yield self._ids(own)
            yield from self._parts(task.items, after, own, alone=alone)
            always = any(n_launches(item) not in (None, 0) for item in task.items)
            self.short.discard(after)
            yield c.Assign(c.Name(after), c.Name(own)) if always else self._replaced(after, own)
        self.scope.held = {}

    def _held(self, task: Task) -> Iterator[c.Stmt]:
        """Elements that tasks write are read once for a task, which may write them itself in a part of it."""
        own = tuple(inner.intermediates for item in task.items for inner in items_of(item) if isinstance(inner, Scope))
        for node in self.late.waited_for((own, tuple((launch.arguments, launch.scalars) for launch in task.launches))):
            name = self.scope.names.take(f"{self.scope.tensor_name(node.tensor)}_value")
            yield c.Declare("const double" if node.tensor.dtype.is_float else "const int64_t", name, self.scope.scalar(node))
            self.scope.held[node] = c.Name(name)

    def _parts(self, items: tuple[NpuItem, ...], after: str | None, ends: str, *, alone: bool) -> Iterator[c.Stmt]:
        for item in items:
            match item:
                case Launch():
                    yield from self._launch(item, after, ends)
                case Scope(body=inside):
                    yield from self._scope(item, partial(self._parts, inside.items, after, ends, alone=False),
                                           implicit=alone and len(items) == 1)
                case Repeat(body=body):
                    yield from self._for(item, partial(self._parts, body.items, after, ends, alone=False), {after})
                case Unordered(parts) | Block(parts):
                    yield from self._parts(parts, after, ends, alone=False)
