"""Emit the orchestration of a package: C++ that tests the guards of a plan and then submits its tasks in program order.

`BodyLowering` keeps the loops and forks of the plan. Program order that must be stated travels in a list of task ids, `after`: the ids that
the next statement waits for. All iterations of an unordered loop start from the same list, and the ids with which they end replace the list
after the loop.

`PipelineLowering` adds pipelines. Each process is a closure that resumes where it stopped, with a frame for the variables that outlive its
waits:

    struct load_frame { int at; int stream; int64_t b; pto_wsp::Ids after; };
    load_frame load[1] = {};
    const auto load_process = [&](load_frame &self) -> pto_wsp::Step {
        switch (self.at) { case 1: goto wait_1; }
        for (self.b = 0; self.b < 8; ++self.b) {
            … tasks …
    wait_1:
            if (!tokens.may_send(self.stream)) { return network.waits(self.at, 1, …); }
            … tokens.send(…) …

A process never waits for a task: the tasks after a receive wait instead. The part that does not depend on the program is
csrc/npu/pto_wsp_channels.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import partial
from typing import assert_never

from pto_wsp.c import syntax as c
from pto_wsp.c.printer import comment_text, print_stmts
from pto_wsp.c.render import CComment, CIdent, TemplateUnit, render
from pto_wsp.c.syntax import c_ident
from pto_wsp.errors import InternalError, raise_all
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import (
    AwaitEvent,
    Choice,
    Consume,
    Do,
    Loop,
    Pipeline,
    Receive,
    RecordEvent,
    Send,
    SetSlot,
    Sides,
    communicates,
    leaves,
    walk,
)
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.plan import Check, is_float_symbol
from pto_wsp.ir.waits import TrackedHandle
from pto_wsp.npu.emit.orchestration_launches import (
    FunctionScope,
    LaunchLowering,
    call,
    extents_array,
    is_many,
    runtime_dtype,
    text_literal,
    unless_within,
)
from pto_wsp.npu.plan.arguments import allocated_by_launches, tensor_directions
from pto_wsp.npu.plan.descriptors import runtime_errors
from pto_wsp.npu.plan.guards import Checked, Guard, GuardLet, Late, guards_of
from pto_wsp.npu.plan.model import (
    NpuBody,
    NpuChoice,
    NpuCommunication,
    NpuItem,
    NpuLoop,
    NpuPipeline,
    NpuPlan,
    NpuProcess,
    NpuSend,
    NpuSides,
    NpuSlot,
    Scope,
)
from pto_wsp.npu.plan.places import IntermediateOf, Resource, Statement, TaskItems, TensorOf, n_launches, statements, surely_submits
from pto_wsp.npu.plan.waits import UNKNOWN_TASKS, last_tasks, waits_of
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(slots=True)
class BodyLowering(LaunchLowering):
    """Lowers the body of a plan in the scope of its function. `leave`: the statement that ends the function."""

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

    def _block(self, block: NpuBody, after: str | None) -> Iterator[c.Stmt]:
        parts = statements(block)
        for position, statement in enumerate(parts):
            for handle in self.waits.handles.closed_after(block, position):
                yield self._opened(handle)
            yield from self._statement(statement, after, alone=block is self.scope.plan.body and len(parts) == 1)

    def _statement(self, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
        match statement:
            case TaskItems():
                yield from self._task(statement, after, alone=alone)
            case Loop():
                yield from self._repeat(statement, after)
            case Choice():
                for position in range(len(statement.bodies)):
                    for handle in self.waits.handles.closed_after(statement, position):
                        yield self._opened(handle)
                yield from self._ways(statement, 0, after)
            case SetSlot():
                yield from self._set(statement)
            case Scope():
                yield from self._scope(statement, partial(self._block, statement, after), implicit=alone)
            case PlanSequence():
                yield from self._block(statement, after)
            case Sides():
                yield from self._sides(statement, after)
            case Pipeline() | Consume() | Send() | Receive() | RecordEvent() | AwaitEvent():
                yield from self._communicate(statement, after)
            case _:
                assert_never(statement)

    def _communicate(self, statement: NpuPipeline | NpuCommunication, after: str | None) -> Iterator[c.Stmt]:
        """A pipeline, or what a process in it does with channels and events."""
        raise InternalError(f"{type(statement).__name__} without a lowering of pipelines")

    def _opened(self, handle: TrackedHandle) -> c.Stmt:
        """Return the declaration of the list of task ids that a handle collects."""
        self.handles[handle] = self._list_name(handle.variable)
        return self._ids(self.handles[handle])

    def _repeat(self, loop: NpuLoop, after: str | None) -> Iterator[c.Stmt]:
        yield c.Comment(f"{loop.span.short}: for {loop.known_var.name}")
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

    def _ways(self, fork: NpuChoice, position: int, after: str | None) -> Iterator[c.Stmt]:
        """The ways of a fork from one on. What comes next in each waits for `after`, which holds then what the way has ended with."""
        if position == len(fork.branches):
            yield from self._block(fork.otherwise, after)
            return
        way = fork.branches[position]
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

    def _set(self, item: NpuSlot) -> Iterator[c.Stmt]:
        yield from self._checked(item)
        yield c.Assign(self.scope.slot(item.slot), self.scope.scalar(item.value))

    def _checked(self, item: Checked) -> Iterator[c.Stmt]:
        """Yield the late checks of an item: if one fails, no more tasks are submitted."""
        for check in self.late.checks_of(item):
            yield unless_within(check, self.scope, self.leave, "no more tasks are submitted")

    def _sides(self, whole: NpuSides, after: str | None) -> Iterator[c.Stmt]:
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

    def _turn(self, body: NpuBody, after: str, ends: str) -> Iterator[c.Stmt]:
        """One of several parts without an order: it starts from `after` and adds what it ends with to `ends`, where that is asked for."""
        if not self._is_named(body):
            yield from self._block(body, after)
            return
        parts = statements(body)
        if len(parts) == 1 and isinstance(parts[0], TaskItems) and not self.waits.handles.closed_after(body, 0):
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
        """Return the statement that moves `ends` to `after` unless `ends` is empty."""
        self.short.discard(after)
        return c.If(c.Infix(">", c.Call(f"{ends}.size", ()), c.Int(0)), (c.Assign(c.Name(after), c.Name(ends)),))

    def _joined(self, after: str | None, body: NpuBody) -> Iterator[c.Stmt]:
        """Several tasks wait for the same others: many of those are joined once, before."""
        bounds = [self.waits.order.waits.get(launch.source, 0) for launch in leaves(body)]
        if after is not None and any(map(is_many, bounds)):
            yield from self._join(after)

    def _is_waited_for(self, body: NpuBody) -> bool:
        """Tell whether something is told to wait for what a body ends with."""
        lasts = last_tasks(body)
        return UNKNOWN_TASKS in lasts or not self.waits.order.counts.isdisjoint(lasts)

    def _is_named(self, body: NpuBody) -> bool:
        """Tell whether something is told to wait for anything in a body."""
        return communicates(body) or any(launch.source in self.waits.order.counts for launch in leaves(body))

    def _for(self, loop: NpuLoop, body: Callable[[], Iterator[c.Stmt]], unchanged: AbstractSet[str | None]) -> Iterator[c.Stmt]:
        """A loop. `unchanged`: lists that its turns leave alone, of those that this function knows about."""
        names, short = self.scope.names, self.short
        start = self.scope.scalar(loop.start)
        (before, stop), (also, step) = (self._once(node, f"{c.c_ident(loop.var.name)}_{what}")
                                        for node, what in ((loop.stop, "stop"), (loop.step, "step")))
        yield from (*before, *also)
        self.scope.names, self.short = names.inner(), {name for name in short if name in unchanged}
        type_, name = self._counter(loop.var)
        self.depth += 1
        lead = () if loop.through is None else tuple(self._checked(loop.through))
        inner = tuple(body())
        if loop.through is not None:
            lead = (*lead, *self._let(loop.through.var, loop.through.value))
            inner = (*lead, *inner)
        self.depth -= 1
        self.scope.names, self.short = names, {name for name in short if name in unchanged}
        yield c.For(type_, name, start, stop, step, inner, wraps=c.may_wrap(stop, step))

    def _counter(self, var: s.Var) -> tuple[str, str]:
        """Return the type of a loop variable, empty if it is declared already, and its name."""
        return "int64_t", self.scope.loop_variable(var)

    def _once(self, node: s.Scalar, name: str) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """Return the statements that compute a loop bound before the loop, and its expression."""
        return self.scope.once(node, name)

    def _let(self, var: s.Var, value: s.Scalar) -> Iterator[c.Stmt]:
        """Yield the declaration of the variable of a sparse lead, in each iteration."""
        return self.scope.let(var, value)

    def _scope(self, scope: Scope, body: Callable[[], Iterator[c.Stmt]], *, implicit: bool) -> Iterator[c.Stmt]:
        """Yield a body in a scope of the runtime; without a scope if nothing is allocated, or if the allocation lives to the end."""
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
        """Return the declaration of the list of a tensor's readers since its last write.

        The list keeps the readers' windows, except for an intermediate, which tasks read whole.
        """
        match resource:
            case IntermediateOf():
                return self._ids(self._readers(resource))
            case TensorOf(slot):
                self.scope.features.add("PTO_WSP_EDGES")
                return c.Construct(f"pto_wsp::Readers<{self.scope.plan.tensors[slot].ref.rank}>", self._readers(resource))

    def _allocated(self, scope: Scope) -> Iterator[c.Stmt]:
        """Allocate those of the workload's intermediate tensors that no launch is given new."""
        plan, known = self.scope.plan, allocated_by_launches(scope)
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

    # -- tasks

    def _task(self, task: TaskItems, after: str | None, *, alone: bool, ends: str = "") -> Iterator[c.Stmt]:
        """Yield the statements of a task. If a statement waits for the task, its ids go to `ends`, or replace those in `after`."""
        first = task.launches[0]
        kernel = self.scope.plan.kernels[first.kernel].kernel.name
        yield c.Comment(f"{first.span.short}: {kernel}[{', '.join(first.labels)}]")
        for launch in task.launches:
            yield from self._checked(launch)
        yield from self._held(task)
        if ends or after is None or task.source not in self.waits.order.counts:
            yield from self._parts(task.items, after, ends if task.source in self.waits.order.counts else "", alone=alone)
        elif len(task.items) == 1 and isinstance(task.items[0], Do):
            yield from self._launch(task.items[0].leaf, after, after, replaces=True)
        else:
            own = self._list_name("ends")
            yield self._ids(own)
            yield from self._parts(task.items, after, own, alone=alone)
            always = any(n_launches(item) not in (None, 0) for item in task.items)
            self.short.discard(after)
            yield c.Assign(c.Name(after), c.Name(own)) if always else self._replaced(after, own)
        self.scope.held = {}

    def _held(self, task: TaskItems) -> Iterator[c.Stmt]:
        """Elements that tasks write are read once for a task, which may write them itself in a part of it."""
        own = tuple(inner.intermediates for item in task.items for inner in walk(item) if isinstance(inner, Scope))
        for node in self.late.waited_for((own, tuple((launch.arguments, launch.scalars) for launch in task.launches))):
            name = self.scope.names.take(f"{self.scope.tensor_name(node.tensor)}_value")
            yield c.Declare("const double" if node.tensor.dtype.is_float else "const int64_t", name, self.scope.scalar(node))
            self.scope.held[node] = c.Name(name)

    def _parts(self, items: tuple[NpuItem, ...], after: str | None, ends: str, *, alone: bool) -> Iterator[c.Stmt]:
        for item in items:
            match item:
                case Do(launch):
                    yield from self._launch(launch, after, ends)
                case Scope(inside):
                    yield from self._scope(item, partial(self._parts, inside, after, ends, alone=False),
                                           implicit=alone and len(items) == 1)
                case Loop(body=body):
                    yield from self._for(item, partial(self._parts, body.items, after, ends, alone=False), {after})
                case Sides(parts) | PlanSequence(parts):
                    yield from self._parts(parts, after, ends, alone=False)


# -- pipelines -------------------------------------------------------------------------------------


_SELF = "self."
_LEAVES = c.Name("pto_wsp::Step::LEAVES")


@dataclass(slots=True)
class _CppFrame:
    """The process being lowered: its frame fields, by name with their types, and the number of resume labels."""

    fields: dict[str, str] = field(default_factory=dict)
    n_labels: int = 0


@dataclass(slots=True)
class PipelineLowering(BodyLowering):
    """Lowers the body of a plan with pipelines. `frame`: of the current process; None outside, and in statements that never wait."""

    frame: _CppFrame | None = None
    channels: dict[int, str] = field(default_factory=dict)
    events: dict[int, str] = field(default_factory=dict)
    nothing: str = ""              # id list of a process without program order

    # -- variables that outlive a wait

    def _statement(self, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
        frame = self.frame
        if frame is None or (not isinstance(statement, TaskItems) and communicates(statement)):
            if frame is not None and isinstance(statement, Scope):
                raise InternalError("a scope of a process would still be open while the process waits")
            yield from BodyLowering._statement(self, statement, after, alone=alone)
            return
        self.frame, names = None, self.scope.names
        self.scope.names = names.inner()
        body = tuple(BodyLowering._statement(self, statement, after, alone=alone))
        self.frame, self.scope.names = frame, names
        yield c.Block(body)

    def _list_name(self, stem: str) -> str:
        name = BodyLowering._list_name(self, stem)
        return name if self.frame is None else _SELF + name

    def _ids(self, name: str, value: str | None = None) -> c.Stmt:
        made = BodyLowering._ids(self, name, value)
        if self.frame is None:
            return made
        self._keep(name, "pto_wsp::Ids")
        return call(f"{name}.clear") if value is None else c.Assign(c.Name(name), c.Name(value))

    def _counter(self, var: s.Var) -> tuple[str, str]:
        if self.frame is None:
            return BodyLowering._counter(self, var)
        return "", self._variable(var)

    def _variable(self, var: s.Var) -> str:
        """Return the C++ name of a frame variable."""
        return self._keep(self.scope.loop_variable(var, _SELF), "int64_t")

    def _once(self, node: s.Scalar, name: str) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        before, value = BodyLowering._once(self, node, name)
        if self.frame is None or not isinstance(value, c.Name) or not before:
            return before, value
        kept = c.Name(self._keep(_SELF + value.text, "int64_t"))
        return tuple(c.Assign(kept, one.init) for one in before if isinstance(one, c.Declare) and one.init is not None), kept

    def _let(self, var: s.Var, value: s.Scalar) -> Iterator[c.Stmt]:
        if self.frame is None:
            yield from BodyLowering._let(self, var, value)
        elif self.scope.is_used(var):
            yield c.Assign(c.Name(self.scope.loop_variable(var, _SELF)), self.scope.scalar(value))
            self._variable(var)

    def _keep(self, name: str, type_: str) -> str:
        if self.frame is not None:
            self.frame.fields[name.removeprefix(_SELF)] = type_
        return name

    # -- processes

    def _communicate(self, statement: NpuPipeline | NpuCommunication, after: str | None) -> Iterator[c.Stmt]:
        if isinstance(statement, Pipeline):
            yield from self._network(statement, after)
            return
        plan, list_ = self.scope.plan, after or self.nothing
        self.short.discard(list_)
        match statement:
            case Send():
                yield from self._send(statement, list_)
            case Receive(channel, variables):
                called = self.channels[channel]
                yield c.Comment(f"{statement.span.short}: receive")
                what = f"receive({plan.channels[channel].name})"
                may = c.Call(f"{called}.may_take", (_STREAM, c.Name(list_)))
                yield self._wait(may, statement.span, what, c.Call(f"{called}.drained", ()))
                yield from self._take(channel, variables, list_)
            case Consume(channel, variables, body):
                called = self.channels[channel]
                yield c.Comment(f"{statement.span.short}: consume")
                what = f"consume({plan.channels[channel].name})"
                wait = self._wait(c.Call(f"{called}.may_take", (_STREAM, c.Name(list_))), statement.span, what)
                names = self.scope.names
                self.scope.names = names.inner()
                taken = tuple(self._take(channel, variables, list_))
                inner = tuple(self._block(body, after))
                self.scope.names = names
                self.short.discard(list_)
                assert isinstance(wait, c.Block)
                label, asks = wait.body
                yield c.Forever((label, c.If(c.Call(f"{called}.drained", ()), (c.Break(),)), asks, *taken, *inner))
            case RecordEvent(event):
                yield c.Comment(f"{statement.span.short}: record")
                yield call(f"{self.events[event]}.record", c.Name(list_))
            case AwaitEvent(event):
                called = self.events[event]
                yield c.Comment(f"{statement.span.short}: synchronize")
                count = c.Name(self._keep(f"{_SELF}awaited_{event}", "int64_t"))
                yield self._wait(c.Call(f"{called}.has", (count,)), statement.span, f"synchronize({plan.events[event]})")
                yield call(f"{called}.await", count, c.Name(list_))
                yield c.Assign(count, c.Int(1), "+=")

    def _send(self, send: NpuSend, after: str) -> Iterator[c.Stmt]:
        called = self.channels[send.channel]
        yield c.Comment(f"{send.span.short}: send")
        yield self._wait(c.Call(f"{called}.may_send", (_STREAM,)), send.span, f"send({self.scope.plan.channels[send.channel].name})")
        frame, self.frame = self.frame, None
        checks = tuple(self._checked(send))
        values = tuple(map(self.scope.scalar, send.payload)) or (c.Int(0),)
        self.frame = frame
        token = c.Declare("const int64_t", "token", c.Braces(values), array=(len(values),))
        yield c.Block((*checks, token, call(f"{called}.send", c.Name("token"), c.Name(after))))

    def _take(self, channel: int, variables: tuple[s.Var, ...], after: str) -> Iterator[c.Stmt]:
        taken = c.Call(f"{self.channels[channel]}.take", (c.Name(after),))
        if not variables:
            yield c.Evaluate(taken)
            return
        values = (c.Assign(c.Name(self._variable(var)), c.Index(c.Name("token"), c.Int(k))) for k, var in enumerate(variables))
        yield c.Block((c.Declare("const int64_t *const", "token", taken), *values))

    def _wait(self, may: c.Expr, span: Span, what: str, never: c.Expr | None = None) -> c.Stmt:
        """Return the resume label of a wait, and the return to the scheduler if the process cannot continue.

        `never`: the condition that the wait will never end.
        """
        if self.frame is None:
            raise InternalError("a process waits where it has no frame", what)
        self.frame.n_labels += 1
        where = text_literal(f"{span.short}: {what}")
        waits = c.Return(c.Call("network.waits", (c.Name("self.at"), c.Int(self.frame.n_labels), where)))
        says = text_literal(f"{span.short}: {what}: no token will come")
        ends = () if never is None else (c.If(never, (c.Return(c.Call("network.leaves", (says,))),)),)
        return c.Block((c.Label(f"wait_{self.frame.n_labels}"), *ends, c.If(c.Prefix("!", may), (waits,))))

    def _network(self, network: NpuPipeline, after: str | None) -> Iterator[c.Stmt]:
        yield c.Comment(f"{network.span.short}: {', '.join(stage.name for stage in network.processes)}")
        names = self.scope.names
        self.scope.names = names.inner()
        self.scope.features.add("PTO_WSP_EDGES")
        yield c.Block(tuple(self._inside(network, after)))
        self.scope.names = names

    def _inside(self, network: NpuPipeline, after: str | None) -> Iterator[c.Stmt]:
        plan, names = self.scope.plan, self.scope.names
        yield c.Construct("pto_wsp::Network", "network")
        for number in network.channels:
            channel = plan.channels[number]
            called = self.channels[number] = names.fresh(f"channel_{channel.name}")
            yield c.Construct(f"pto_wsp::Channel<{channel.n_payload}>", called, (c.Name("network"), text_literal(channel.name),
                                                                               c.Int(channel.depth)))
            for does, streams in (("gives", channel.producers), ("takes", channel.consumers)):
                yield from (call(f"{called}.{does}", c.Int(stream)) for stream in streams)
        for number in network.events:
            called = self.events[number] = names.fresh(f"event_{plan.events[number]}")
            yield c.Construct("pto_wsp::Event", called, (c.Name("network"), text_literal(plan.events[number])))
        if after is None:
            self.nothing = names.take("none")
            yield self._ids(self.nothing)
        turns: list[c.Stmt] = []
        frames: list[str] = []
        for stage in network.processes:
            name = names.fresh(stage.name)
            process, frame = names.take(f"{name}_process"), names.take(f"{name}_frame")
            yield from self._stage(stage, after, name, process, frame)
            for replica in range(stage.replicas):
                own = f"{name}[{replica}]"
                frames.append(own)
                turns.append(c.If(c.Infix("==", c.Name("stream"), c.Int(stage.stream + replica)),
                                  (c.Return(c.Call(process, (c.Name(own),))),)))
        yield c.Closure("run", "int stream", "pto_wsp::Step", (*turns, c.Return(_LEAVES)))
        ran = c.Call("network.run", (c.Int(network.processes[0].stream), c.Int(len(frames)), c.Name("run")))
        yield c.If(c.Prefix("!", ran), (self.leave,))
        if after is not None:
            ends = names.take("ends")
            yield self._ids(ends)
            for own in frames:
                moved = c.Prefix("!", c.Call(f"{own}.after.is", (c.Name(after),)))
                yield c.If(moved, (call(f"{ends}.add", c.Name(f"{own}.after")),))
            yield self._replaced(after, ends)

    def _stage(self, stage: NpuProcess, after: str | None, name: str, process: str, frame: str) -> Iterator[c.Stmt]:
        """The frame of a process, as many as there are replicas, and its function."""
        outer = (self.frame, self.leave, self.short, self.scope.names)
        own = self.frame = _CppFrame({"at": "int", "stream": "int"})
        self.leave, self.short, self.scope.names = c.Return(_LEAVES), set(), self.scope.names.inner()
        list_ = None
        if after is not None:
            self.scope.names.take("after")
            list_ = self._keep(f"{_SELF}after", "pto_wsp::Ids")
        body = tuple(self._block(stage.body, list_))
        self.frame, self.leave, self.short, self.scope.names = outer
        yield c.Comment(f"{stage.span.short}: process {stage.name}")
        yield c.Struct(frame, tuple(c.Declare(type_, field_name) for field_name, type_ in own.fields.items()))
        yield c.Declare(frame, name, c.Braces(()), array=(stage.replicas,))
        for replica in range(stage.replicas):
            yield c.Assign(c.Name(f"{name}[{replica}].stream"), c.Int(stage.stream + replica))
            if after is not None:
                yield c.Assign(c.Name(f"{name}[{replica}].after"), c.Name(after))
        labels = tuple(f"wait_{number}" for number in range(1, own.n_labels + 1))
        resumed = (c.JumpTable(c.Name("self.at"), labels),) if labels else (c.Evaluate(c.Cast("void", c.Name("self"))),)
        yield c.Closure(process, f"{frame} &self", "pto_wsp::Step", (*resumed, *body, c.Return(c.Name("pto_wsp::Step::ENDS"))))


# -- the file --------------------------------------------------------------------------------------


_STREAM = c.Name("self.stream")


class _OrchestrationUnit(TemplateUnit):
    """The values of orchestration.cpp.j2."""

    name: CComment
    tensors: tuple[CComment, ...]
    features: tuple[CIdent, ...]
    headers: tuple[str, ...]
    functions: tuple[str, ...]
    n_arguments: int
    body: tuple[str, ...]


def orchestration_headers(plan: NpuPlan) -> tuple[str, ...]:
    """Return the headers of the package that its orchestration includes, in order; they lie in csrc/npu."""
    has_pipelines = any(isinstance(item, Pipeline) for item in walk(plan.body))
    return ("pto_wsp_abi.h", "pto_wsp_channels.h") if has_pipelines else ("pto_wsp_abi.h",)


def orchestration_path(plan: NpuPlan) -> str:
    """Return the path of the orchestration in the package."""
    return f"orchestration/{c_ident(plan.name)}.cpp"


def emit_orchestration(plan: NpuPlan, runtime: str = "tensormap_and_ringbuffer") -> str:
    """Return the C++ file that submits the tasks of a plan.

    Raises: N101 if the plan reads elements while tasks are created, and the runtime cannot read them.
    """
    raise_all(runtime_errors(plan, runtime))
    entry, late = FunctionScope(plan), Late(plan)
    body = PipelineLowering(entry, waits_of(plan), late).whole()
    checked = FunctionScope(plan)
    guards = tuple(_guards(guards_of(plan, late), checked))
    asked = (c.If(c.Prefix("!", c.Call("holds", (c.Name("inputs"),))), (c.Return(),)),) if guards else ()
    unit = _OrchestrationUnit(
        name=plan.name, tensors=tuple(_arguments(plan)), features=tuple(sorted(entry.features | checked.features)),
        headers=orchestration_headers(plan),
        functions=tuple(_guard_function(guards, checked)), n_arguments=len(plan.arguments) + len(plan.symbols),
        body=_lines((*asked, *entry.prologue(), *body)))
    return render("ascend_npu/orchestration.cpp.j2", unit)


def _arguments(plan: NpuPlan) -> Iterator[str]:
    """Yield a line per argument of the orchestration."""
    for position, (slot, role) in enumerate(zip(plan.arguments, tensor_directions(plan), strict=True)):
        yield f"tensor {position}: {comment_text(slot.ref.shown)} {list(slot.ref.shape)} {slot.ref.dtype} {role.value.upper()}"
    for position, symbol in enumerate(plan.symbols):
        yield f"scalar {position}: {comment_text(symbol.name)}, {'the bits of an f32' if is_float_symbol(symbol) else 'an integer'}"


def _guard_function(guards: Sequence[c.Stmt], scope: FunctionScope) -> Iterator[str]:
    if guards:
        lines = _lines((*scope.prologue(), *guards, c.Return(c.Name("true"))))
        says = "// What must hold for every task to stay inside its tensors."
        yield "\n".join((says, "static bool holds(const pto_wsp::Inputs &inputs) {", *lines, "}"))


def _guards(guards: Sequence[Guard], scope: FunctionScope) -> Iterator[c.Stmt]:
    for position, guard in enumerate(guards):
        match guard:
            case Do(Check() as check):
                yield unless_within(check, scope, c.Return(c.Name("false")))
            case Loop(var, start, stop, step, body=body):
                low, name = scope.scalar(start), scope.loop_variable(var)
                (before, high), (also, by) = scope.once(stop, f"{name}_stop"), scope.once(step, f"{name}_step")
                yield from (*before, *also)
                yield c.For("int64_t", name, low, high, by, tuple(_guards(body.items, scope)), wraps=c.may_wrap(high, by))
            case Do(GuardLet(var, value)):
                rest = tuple(_guards(guards[position + 1:], scope))
                yield from (*scope.let(var, value), *rest)
                return
            case Choice((way,), other):
                asked = scope.scalar(way.condition)
                yield c.If(asked, tuple(_guards(way.body.items, scope)), tuple(_guards(other.items, scope)))
            case SetSlot(slot, value):
                yield c.Assign(scope.slot(slot), scope.scalar(value))


def _lines(body: Sequence[c.Stmt]) -> tuple[str, ...]:
    return tuple(print_stmts(body, 1, comment="//"))
