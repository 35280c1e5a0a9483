"""Pipelines in C++: each process a closure that goes on where it stood, with a frame for what outlives its waits.

    struct load_frame { int at; int stream; int64_t b; pto_wsp::Ids after; };
    load_frame load[1] = {};
    const auto load_process = [&](load_frame &self) -> pto_wsp::Step {
        switch (self.at) { case 1: goto wait_1; }
        for (self.b = 0; self.b < 8; ++self.b) {
            … tasks …
    wait_1:
            if (!tokens.may_send(self.stream)) { return network.waits(self.at, 1, …); }
            … tokens.send(…) …

What has to wait never waits for a task: the tasks behind a receive are told to. What does not depend on the program is in
csrc/npu/pto_wsp_channels.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.npu.orchestration.launches import call
from pto_wsp.codegen.npu.orchestration.scalars import text_literal
from pto_wsp.codegen.npu.orchestration.structure import BodyLowering
from pto_wsp.errors import InternalError
from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send
from pto_wsp.plan.npu.edges.statements import Statement, Task
from pto_wsp.plan.npu.model import Communication, Drain, Network, Scope, Stage
from pto_wsp.plan.npu.walk import communicates
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass

_SELF = "self."
_LEAVES = c.Name("pto_wsp::Step::LEAVES")


@dataclass(slots=True)
class _Frame:
    """The process being written: what outlives its waits, by name with its type, and at how many places it may go on."""

    fields: dict[str, str] = field(default_factory=dict)
    n_labels: int = 0


@dataclass(slots=True)
class PipelineLowering(BodyLowering):
    """Lowers a plan's body, pipelines too. `frame`: of the process at hand, None outside and in what never waits."""

    frame: _Frame | None = None
    channels: dict[int, str] = field(default_factory=dict)
    events: dict[int, str] = field(default_factory=dict)
    nothing: str = ""              # the list of a process without an order

    # ---- what outlives a wait ----

    def _statement(self, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
        frame = self.frame
        if frame is None or (not isinstance(statement, Task) and communicates(statement)):
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
        """Return how a variable of the frame is spelled."""
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

    # ---- processes ----

    def _communicate(self, statement: Network | Drain | Communication, after: str | None) -> Iterator[c.Stmt]:
        if isinstance(statement, Network):
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
            case Drain(channel, variables, body):
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

    def _send(self, send: Send, after: str) -> Iterator[c.Stmt]:
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
        """The place at which a process goes on, and where it does not. `never`: it never will."""
        if self.frame is None:
            raise InternalError("a process waits where it has no frame", what)
        self.frame.n_labels += 1
        where = text_literal(f"{span.short}: {what}")
        waits = c.Return(c.Call("network.waits", (c.Name("self.at"), c.Int(self.frame.n_labels), where)))
        says = text_literal(f"{span.short}: {what}: no token will come")
        ends = () if never is None else (c.If(never, (c.Return(c.Call("network.leaves", (says,))),)),)
        return c.Block((c.Label(f"wait_{self.frame.n_labels}"), *ends, c.If(c.Prefix("!", may), (waits,))))

    def _network(self, network: Network, after: str | None) -> Iterator[c.Stmt]:
        yield c.Comment(f"{network.span.short}: {', '.join(stage.name for stage in network.stages)}")
        names = self.scope.names
        self.scope.names = names.inner()
        self.scope.features.add("PTO_WSP_EDGES")
        yield c.Block(tuple(self._inside(network, after)))
        self.scope.names = names

    def _inside(self, network: Network, after: str | None) -> Iterator[c.Stmt]:
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
        for stage in network.stages:
            name = names.fresh(stage.name)
            process, frame = names.take(f"{name}_process"), names.take(f"{name}_frame")
            yield from self._stage(stage, after, name, process, frame)
            for replica in range(stage.replicas):
                own = f"{name}[{replica}]"
                frames.append(own)
                turns.append(c.If(c.Infix("==", c.Name("stream"), c.Int(stage.stream + replica)),
                                  (c.Return(c.Call(process, (c.Name(own),))),)))
        yield c.Closure("run", "int stream", "pto_wsp::Step", (*turns, c.Return(_LEAVES)))
        ran = c.Call("network.run", (c.Int(network.stages[0].stream), c.Int(len(frames)), c.Name("run")))
        yield c.If(c.Prefix("!", ran), (self.leave,))
        if after is not None:
            ends = names.take("ends")
            yield self._ids(ends)
            for own in frames:
                moved = c.Prefix("!", c.Call(f"{own}.after.is", (c.Name(after),)))
                yield c.If(moved, (call(f"{ends}.add", c.Name(f"{own}.after")),))
            yield self._replaced(after, ends)

    def _stage(self, stage: Stage, after: str | None, name: str, process: str, frame: str) -> Iterator[c.Stmt]:
        """The frame of a process, as many as there are replicas, and its function."""
        outer = (self.frame, self.leave, self.short, self.scope.names)
        own = self.frame = _Frame({"at": "int", "stream": "int"})
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


_STREAM = c.Name("self.stream")
