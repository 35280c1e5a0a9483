"""Lower pipelines of the C orchestrator: processes, channels, events.

Each process of a pipeline is a function that resumes where it stopped, with a frame for the variables that outlive its waits:

    int32_t load_1_process(void *shared, pto_process *process)
    {
        …
        switch (self->process.step) { case 1: goto wait_1; }
        for (self->i = 0; self->i < 8; ++self->i) {
            … tasks …
    wait_1:
            if (pto_may_send(…) == PTO_WAITS)
                return sink->status;
            … pto_send(…) …

The part that does not depend on the program is csrc/include/pto_channel.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from pto_wsp.c import syntax as c
from pto_wsp.c.orchestrator_names import ALL_TASKS, PROCESS, RUN, SELF, STATUS, CNames, Frame, Variables
from pto_wsp.c.orchestrator_statements import ready
from pto_wsp.ir.channels import recorder_of
from pto_wsp.ir.flow import AwaitEvent, Consume, Receive, RecordEvent, Send, walk
from pto_wsp.ir.plan import Body, PlanCommunication, PlanPipeline, PlanProcess, PlanSend, TaskPlan
from pto_wsp.ir.scalar import Var
from pto_wsp.ir.waits import HandleUses

_PIPELINE = c.Name("pipeline")
_LEAVE = (c.Return(STATUS),)


def run_struct(variables: Variables) -> c.Struct:
    """Return the struct that the main program and its processes share."""
    fields = (c.Declare("const pto_bindings *", "bound"), c.Declare("int64_t", "task_index"), c.Declare("pto_pipeline", "pipeline"),
              *(c.Declare(type_, name) for name, type_ in variables.run.items()))
    return c.Struct("run", fields)


def run_start() -> Iterator[c.Stmt]:
    """Yield the allocation of the shared struct at the start of the main program."""
    yield c.Declare("struct run", "shared", c.Braces((c.Int(0),)))
    yield c.Declare("struct run *const", "run", c.Prefix("&", c.Name("shared")))
    yield c.Assign(c.Member(RUN, "bound", arrow=True), c.Name("bound"))


def start_pipeline(pipeline: PlanPipeline, names: CNames, after: str) -> Iterator[c.Stmt]:
    """Yield what runs a pipeline in the main program."""
    plan = names.plan
    if not pipeline.processes:
        return
    for number in pipeline.channels:
        for what, streams in (("producers", plan.channels[number].producers), ("consumers", plan.channels[number].consumers)):
            yield c.Declare("static const int32_t", f"{what}_{number}", c.Braces(tuple(map(c.Int, streams))), array=(len(streams),))
    channels = tuple(_channel(plan, number) for number in pipeline.channels)
    events = tuple(c.Braces((c.Int(number), c.Int(recorder_of(pipeline, number)), c.Int(0), c.Int(0), c.Int(0)))
                   for number in pipeline.events)
    kinds = tuple(c.Braces((c.Name(_function(process)), c.Cast("int64_t", c.Call("sizeof", (c.Name(f"struct {_frame(process)}"),))),
                            c.Int(process.replicas), c.Int(0))) for process in pipeline.processes)
    if channels:
        yield c.Declare("pto_channel", "channels", c.Braces(channels), array=(len(channels),))
    if events:
        yield c.Declare("pto_event", "events", c.Braces(events), array=(len(events),))
    yield c.Declare("static const pto_process_kind", "kinds", c.Braces(kinds), array=(len(kinds),))
    opened = c.Call("pto_open_pipeline", (
        c.Name("sink"), c.Name("channels") if channels else c.Int(0), c.Int(len(channels)), c.Name("events") if events else c.Int(0),
        c.Int(len(events)), c.Int(pipeline.processes[0].stream), c.Int(int(plan.structure))))
    yield c.Assign(c.Member(RUN, "pipeline", arrow=True), opened)
    node: c.Expr = c.Prefix("&", names.ref(after))
    if not plan.structure:
        yield c.Declare("int64_t", "nothing", c.Int(-1))
        node = c.Prefix("&", c.Name("nothing"))
    run = c.Call("pto_run_pipeline", (c.Prefix("&", c.Member(RUN, "pipeline", arrow=True)), c.Name("kinds"), c.Int(len(kinds)), RUN, node))
    yield c.If(run, _LEAVE)


def process_definitions(pipeline: PlanPipeline, process: PlanProcess, frame: Frame, prologue: tuple[c.Stmt, ...], start: tuple[c.Stmt, ...],
                        body: tuple[c.Stmt, ...]) -> Iterator[c.Definition]:
    """Yield the frame and the function of a process."""
    name = f"struct {_frame(process)}"
    yield frame.struct(_frame(process))
    entered = (
        c.Declare("struct run *const", "run", c.Name("shared")),
        c.Declare(f"{name} *const", "self", c.Cast(f"{name} *", c.Name("process"))),
        c.Declare("pto_pipeline *const", "pipeline", c.Prefix("&", c.Member(RUN, "pipeline", arrow=True))),
        c.Declare("pto_sink *const", "sink", c.Member(_PIPELINE, "sink", arrow=True)),
        *((c.Declare("const pto_bindings *const", "bound", c.Member(RUN, "bound", arrow=True)),) if prologue else ()),
    )
    ended = c.Return(c.Call("pto_end_process", (_PIPELINE, _ME)))
    replicas = f", {process.replicas} times" if process.replicas > 1 else ""
    yield c.Function(f"static PTO_ORCHESTRATOR int32_t {_function(process)}(void *shared, pto_process *process)",
                     (*entered, *prologue, *frame.resume(c.Member(PROCESS, "step")), *start, *body, *_closed(frame), ended),
                     f"{process.span.short}: process {process.name}{replicas}")


_ME = c.Prefix("&", PROCESS)
_Body = Callable[[Body], Iterator[c.Stmt]]


def communicate(item: PlanCommunication, names: CNames, handles: HandleUses, after: str,
                body: _Body) -> Iterator[c.Stmt]:
    """Yield the statements of a process's channel or event operation; `body` lowers the body of a consume."""
    match item:
        case Send():
            yield from _send(item, names, handles, after)
        case Receive(channel, variables, site):
            yield c.Comment(f"{item.span.short}: receive({names.plan.channels[channel].name})")
            label, step = _place(names)
            yield c.Label(label)
            must = c.Call("pto_must_take", (_PIPELINE, _end_of(names, "channel", channel), _ME, step, c.Int(site), names.ref(after)))
            yield c.If(c.Infix("==", must, c.Name("PTO_WAITS")), _LEAVE)
            yield from _take(names, channel, variables, site, after)
        case Consume(channel, variables, inner, site):
            yield c.Comment(f"{item.span.short}: consume({names.plan.channels[channel].name})")
            label, step = _place(names)
            may = c.Call("pto_may_take", (_PIPELINE, _end_of(names, "channel", channel), _ME, step, c.Int(site), names.ref(after)))
            drained = c.Call("pto_is_drained", (_end_of(names, "channel", channel),))
            taken = tuple(_take(names, channel, variables, site, after))
            names.loops.extend(variables)
            iteration = tuple(body(inner))
            del names.loops[len(names.loops) - len(variables):]
            yield c.Forever((c.Label(label), c.If(c.Infix("==", may, c.Name("PTO_WAITS")), _LEAVE), c.If(drained, (c.Break(),)),
                             *taken, *iteration))
        case RecordEvent(event, site):
            yield c.Comment(f"{item.span.short}: record({names.plan.events[event].name})")
            yield from _record(names, event, site, after)
        case AwaitEvent(event, site):
            yield c.Comment(f"{item.span.short}: synchronize({names.plan.events[event].name})")
            count = f"awaited_{event}"
            names.variables.keep(count)
            label, step = _place(names)
            yield c.Label(label)
            arguments = (_PIPELINE, _end_of(names, "event", event), _ME)
            may = c.Call("pto_may_pass", (*arguments, step, c.Int(site), names.ref(count)))
            yield c.If(c.Infix("==", may, c.Name("PTO_WAITS")), _LEAVE)
            yield c.If(c.Call("pto_pass_event", (*arguments, c.Int(site), names.ref(count), c.Prefix("&", names.ref(after)))), _LEAVE)
            yield c.Assign(names.ref(count), c.Int(1), "+=")


def _send(send: PlanSend, names: CNames, handles: HandleUses, after: str) -> Iterator[c.Stmt]:
    channel = names.plan.channels[send.channel]
    yield c.Comment(f"{send.span.short}: send({channel.name})")
    label, step = _place(names)
    yield c.Label(label)
    may = c.Call("pto_may_send", (_PIPELINE, _end_of(names, "channel", send.channel), _ME, step, c.Int(send.site)))
    yield c.If(c.Infix("==", may, c.Name("PTO_WAITS")), _LEAVE)
    behind = tuple(names.ref(handle.variable) for handle in handles.send_waits(send.site))
    inside: list[c.Stmt] = list(ready(send.note, names, after if names.plan.structure else None, behind))
    payload: c.Expr = c.Int(0)
    if send.payload:
        inside.append(c.Declare("const int64_t", "payload", c.Braces(tuple(map(names.scalar, send.payload))), array=(len(send.payload),)))
        payload = c.Name("payload")
    inside.append(c.Declare("int64_t", "before", c.Braces((c.Int(-1), *behind)), array=(1 + len(behind),)))
    sent = c.Call("pto_send", (_PIPELINE, _end_of(names, "channel", send.channel), _ME, c.Int(send.site), payload, c.Name("before"),
                               c.Int(1 + len(behind)), c.Prefix("&", names.ref(after))))
    inside.append(c.If(sent, _LEAVE))
    yield c.Block(tuple(inside))


def _take(names: CNames, channel: int, variables: tuple[Var, ...], site: int, after: str) -> Iterator[c.Stmt]:
    taken = c.Call("pto_take", (_PIPELINE, _end_of(names, "channel", channel), _ME, c.Int(site), c.Prefix("&", names.ref(after))))
    inside: list[c.Stmt] = [c.Declare("const int64_t *", "token", taken), c.If(c.Prefix("!", c.Name("token")), _LEAVE)]
    for k, variable in enumerate(variables):
        inside.extend(names.declare("int64_t", names.var(variable), c.Index(c.Name("token"), c.Int(k))))
    yield c.Block(tuple(inside))


def _record(names: CNames, event: int, site: int, after: str) -> Iterator[c.Stmt]:
    frame, sink = names.variables.frame, c.Name("sink")
    everything = frame is not None and frame.records
    before: c.Expr = c.Int(-1)
    if everything:
        yield c.Assign(names.ref(ALL_TASKS), c.Call("sink->join_close", (sink, names.ref(ALL_TASKS), c.Int(-1))))
        yield c.If(STATUS, _LEAVE)
        before = names.ref(ALL_TASKS)
    into = c.Prefix("&", names.ref(after))
    yield c.If(c.Call("pto_record_event", (_PIPELINE, _end_of(names, "event", event), _ME, c.Int(site), before, into)), _LEAVE)
    if everything:     # the next record waits for this one and for the tasks in between
        yield c.Assign(names.ref(ALL_TASKS), c.Call("sink->join_open", (sink,)))
        added = c.Call("sink->join_add", (sink, names.ref(ALL_TASKS), names.ref(after)))
        yield c.If(c.Infix("||", c.Infix("<", names.ref(ALL_TASKS), c.Int(0)), added), _LEAVE)


def _closed(frame: Frame) -> Iterator[c.Stmt]:
    if frame.records:
        last = c.Member(SELF, ALL_TASKS, arrow=True)
        yield c.Assign(last, c.Call("sink->join_close", (c.Name("sink"), last, c.Int(-1))))
        yield c.If(STATUS, _LEAVE)


def records_all(process: PlanProcess, plan: TaskPlan) -> bool:
    """Tell whether events of a process wait for all of its tasks one by one: where no structure orders these."""
    return not plan.structure and any(isinstance(item, RecordEvent) for item in walk(process.body))


def _place(names: CNames) -> tuple[str, c.Expr]:
    """Return the label and the number of the next wait of the process."""
    frame = names.variables.frame
    assert frame is not None
    label, number = frame.wait()
    return label, c.Int(number)


def _channel(plan: TaskPlan, number: int) -> c.Expr:
    channel = plan.channels[number]
    ends = tuple(c.Braces((c.Name(f"{what}_{number}"), c.Int(len(streams)), c.Int(0)))
                 for what, streams in (("producers", channel.producers), ("consumers", channel.consumers)))
    return c.Braces((c.Int(number), c.Int(channel.n_payload), c.Int(channel.depth), c.Int(channel.latency), *ends, c.Int(0), c.Int(0),
                     c.Int(-1), c.Int(0), c.Int(0), c.Int(0), c.Int(channel.initial)))


def _end_of(names: CNames, kind: Literal["channel", "event"], number: int) -> c.Expr:
    """Return the pointer to a channel or an event of the pipeline."""
    position = c.Int(names.positions[(kind, number)])
    return c.Prefix("&", c.Index(c.Member(_PIPELINE, f"{kind}s", arrow=True), position))


def _function(process: PlanProcess) -> str:
    return f"{c.c_ident(process.name)}_{process.stream}_process"


def _frame(process: PlanProcess) -> str:
    return f"{c.c_ident(process.name)}_{process.stream}_frame"
