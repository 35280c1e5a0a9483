"""Lower the body of a plan to the C orchestrator: loops stay loops, and each task is bound, checked, ordered and submitted.

Program order, if the plan asks for it, travels in a C variable: `after` is the node that the next statement waits for (-1: none). A task
waits for `after` and replaces it; all iterations of an unordered loop start from it and end in a join.

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

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from pto_wsp.c import syntax as c
from pto_wsp.c.orchestrator_names import ALL_TASKS, PROCESS, RUN, SELF, STATUS, CNames, Frame, Variables
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.channels import recorder_of
from pto_wsp.ir.flow import (
    AwaitEvent,
    Choice,
    Consume,
    Do,
    Fresh,
    Loop,
    Pipeline,
    Receive,
    RecordEvent,
    Send,
    SetSlot,
    Sides,
    communicates,
    walk,
)
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.mesh import ranks_of_task
from pto_wsp.ir.plan import (
    Body,
    Check,
    ElementRead,
    Item,
    Place,
    PlanBranch,
    PlanCommunication,
    PlanFresh,
    PlanLoop,
    PlanPipeline,
    PlanProcess,
    PlanSend,
    PlanSides,
    Precondition,
    Submit,
    TaskPlan,
)
from pto_wsp.ir.plan_walk import slots_used
from pto_wsp.ir.scalar import Var, print_scalar
from pto_wsp.ir.waits import HandleUses, handle_uses
from pto_wsp.values import dataclass


def allocate(item: PlanFresh, names: CNames, after: str | None) -> Iterator[c.Stmt]:
    """Yield the statements that allocate a tensor of a body."""
    ref = names.plan.tensors[item.tensor].ref
    yield from names.declare("pto_tensor", names.tensors[ref.id], c.Braces((c.Int(0),), "pto_tensor"))
    yield from ready(item.note, names, after)
    sizes = tuple(map(names.scalar, item.sizes)) or tuple(map(c.Int, ref.shape))
    dims: c.Expr = c.Braces(sizes, "const int64_t[]") if sizes else c.Int(0)
    made = c.Call("sink->fresh", (c.Name("sink"), names.tensor(ref), c.Int(ref.dtype.nbytes), c.Int(ref.rank), dims))
    yield c.If(made, (c.Return(STATUS),))


def release(item: PlanFresh, names: CNames) -> Iterator[c.Stmt]:
    """Yield the statements that release a tensor at the end of its body; the sink keeps it for tasks that have yet to run."""
    given = c.Call("sink->release", (c.Name("sink"), names.tensor(names.plan.tensors[item.tensor].ref)))
    yield c.If(given, (c.Return(STATUS),))


WAITED = "waited"    # variable of the last wait's node: later tasks of the stream depend on the elements that it read


def ready(note: Precondition, names: CNames, after: str | None,
          behind: Sequence[c.Expr] = ()) -> Iterator[c.Stmt]:
    """Yield the checks and waits that must precede the evaluation of a node's scalars.

    `after`, `behind`: nodes that the statement waits for anyway.
    """
    order = (*(() if after is None else (names.ref(after),)), *behind)
    for step in names.reads.preparation(note):
        if isinstance(step, Check):
            yield from names.checks((step,))
        else:
            yield c.Block(tuple(_wait(step, names, order)))


def _wait(reads: tuple[ElementRead, ...], names: CNames, order: tuple[c.Expr, ...]) -> Iterator[c.Stmt]:
    yield c.Declare("pto_arg", "reads", array=(len(reads),))
    one = c.Int(1)
    for k, read in enumerate(reads):
        ref = names.plan.tensors[read.slot].ref
        place = c.Prefix("&", c.Index(c.Name("reads"), c.Int(k)))
        yield c.Evaluate(c.Call("pto_bind", (place, names.tensor(ref), names.scalar(read.offset), one, one, one, one, c.Name("PTO_READ"),
                                             c.Int(ref.dtype.nbytes))))
    nodes: c.Expr = c.Braces(order, "const int64_t[]") if order else c.Int(0)
    node = names.ref(WAITED)
    yield c.Assign(node, c.Call("pto_wait", (c.Name("sink"), names.stream, c.Name("reads"), c.Int(len(reads)), nodes, c.Int(len(order)))))
    yield c.If(c.Infix("<", node, c.Int(0)), (c.Return(STATUS),))


def submit(task: Submit, names: CNames, handles: HandleUses, after: str | None) -> Iterator[c.Stmt]:
    """Yield the statements that submit one task; `after`: the variable of the node that the task waits for and replaces."""
    behind = tuple(names.ref(handle.variable) for handle in handles.waits(task.site))
    yield from ready(task.note, names, after, behind)
    use = names.plan.kernels[task.kernel]
    n_args = len(task.places)
    if n_args:
        yield c.Declare("pto_arg", "args", array=(n_args,))
    for k, (place, param) in enumerate(zip(task.places, use.kernel.memory_params, strict=True)):
        yield c.Evaluate(_bind(names, k, place, param.role))
    scalars = tuple(names.slot(value.value, value.dtype) for value in task.scalars)
    order = (*(() if after is None else (names.ref(after),)), *((names.ref(WAITED),) if names.reads.slots else ()))
    arrays: list[tuple[str, c.Expr]] = []
    for name, values in (("scalars", scalars), ("index", tuple(names.scalar(i) for i in task.index)), ("order", order),
                         ("behind", behind)):
        if values:
            yield c.Declare("const int64_t", name, c.Braces(values), array=(len(values),))
        arrays.append((name, c.Name(name) if values else c.Int(0)))
    pointers = dict(arrays)
    said: dict[str, c.Expr] = {
        "kernel": c.Int(task.kernel), "site": c.Int(task.site), "worker": names.scalar(task.worker), "cost": names.scalar(task.cost),
        "n_args": c.Int(n_args), "n_scalars": c.Int(len(scalars)), "n_index": c.Int(len(task.index)), "n_order": c.Int(len(order)),
        "args": c.Name("args") if n_args else c.Int(0), "scalars": pointers["scalars"], "index": pointers["index"],
        "order": pointers["order"], "n_after": c.Int(len(behind)), "stream": names.stream, "after": pointers["behind"],
        "lane": names.scalar(task.lane), "pool": names.scalar(task.pool), "priority": names.scalar(task.priority),
        "position": names.scalar(task.position), "bytes": names.scalar(task.traffic),
        "ranks": names.scalar(ranks_of_task(task.on))}
    fields = tuple(c.Designated(name, value) for name, value in said.items() if value != c.Int(0) or name in ("kernel", "site"))
    yield c.Declare("const pto_task", "task", c.Braces(fields))
    yield c.Declare("const int64_t", "node", c.Call("sink->submit", (c.Name("sink"), c.Prefix("&", c.Name("task")))))
    yield c.If(c.Infix("<", c.Name("node"), c.Int(0)), (c.Return(STATUS),))
    yield c.Assign(names.task_index, c.Int(1), "+=")
    frame = names.variables.frame
    if frame is not None and frame.records:
        yield c.If(c.Call("sink->join_add", (c.Name("sink"), names.ref(ALL_TASKS), c.Name("node"))), (c.Return(STATUS),))
    if after is not None:
        yield c.Assign(names.ref(after), c.Name("node"))
    for handle in handles.collects(task.site):
        added = c.Call("sink->join_add", (c.Name("sink"), names.ref(handle.variable), c.Name("node")))
        yield c.If(added, (c.Return(STATUS),))


def _bind(names: CNames, position: int, place: Place, role: Role) -> c.Expr:
    slot = names.plan.tensors[place.slot]
    flags = " | ".join(flag for flag, on in (("PTO_READ", role.reads), ("PTO_WRITE", role.writes),
                                             ("PTO_KEPT", role.writes and slot.kept)) if on)
    target = c.Prefix("&", c.Index(c.Name("args"), c.Int(position)))
    tensor = names.tensor(slot.ref)
    return c.Call("pto_bind", (target, tensor, names.scalar(place.offset), *(names.scalar(n) for n in place.extent),
                               *(names.scalar(n) for n in place.stride), c.Name(flags), c.Int(slot.ref.dtype.nbytes)))


# -- pipelines -------------------------------------------------------------------------------------


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
            turn = tuple(body(inner))
            del names.loops[len(names.loops) - len(variables):]
            yield c.Forever((c.Label(label), c.If(c.Infix("==", may, c.Name("PTO_WAITS")), _LEAVE), c.If(drained, (c.Break(),)),
                             *taken, *turn))
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


# -- bodies ----------------------------------------------------------------------------------------


_IF_CANCELLED = c.If(c.Prefix("*", c.Member(c.Name("sink"), "cancel", arrow=True)),
                     (c.Return(c.Call("pto_cancelled", (c.Name("sink"),))),))
_Parts: TypeAlias = Callable[[str | None, str | None], Iterator[c.Stmt]]


@dataclass(frozen=True, slots=True)
class OrchestratorC:
    """An orchestrator: the definitions before its function, and the function's body, with parameters `bound` and `sink`."""

    definitions: tuple[c.Definition, ...]
    body: tuple[c.Stmt, ...]


def lower_orchestrator(plan: TaskPlan) -> OrchestratorC:
    """Return the orchestrator of a plan in C."""
    lowering = _Lowering(plan)
    body = lowering.whole()
    if lowering.names.variables.wanted:      # processes read variables of the main program, so these move to the shared struct
        lowering = _Lowering(plan, Variables(frozenset(lowering.names.variables.wanted)))
        body = lowering.whole()
    return OrchestratorC(tuple(lowering.definitions), body)


@dataclass(slots=True)
class _Lowering:
    plan: TaskPlan
    variables: Variables = field(default_factory=Variables)
    names: CNames = field(init=False)
    handles: HandleUses = field(init=False)
    definitions: list[c.Definition] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = CNames(self.plan, self.variables)
        self.handles = handle_uses(self.plan)

    def whole(self) -> tuple[c.Stmt, ...]:
        start = tuple(self._start())
        body = tuple(self._sequence(self.plan.body, "after" if self.plan.structure else None, needed=False))
        if self.plan.n_streams == 1:
            return (*self.names.prologue(), c.Declare("int64_t", "task_index", c.Int(0)), c.Evaluate(c.Cast("void", c.Name("task_index"))),
                    *start, *body, c.Return(STATUS))
        self.definitions.insert(0, run_struct(self.variables))
        return (*run_start(), *self.names.prologue(touched=True), *start, *body, c.Return(STATUS))

    def _start(self) -> Iterator[c.Stmt]:
        if self.plan.structure:
            yield from self.names.declare("int64_t", "after", c.Int(-1))
        for slot in slots_used(self.plan):
            yield from self.names.declare("int64_t", f"slot_{slot}", c.Int(0))
            yield c.Evaluate(c.Cast("void", self.names.ref(f"slot_{slot}")))
        if self.names.reads.slots:
            yield from self.names.declare("int64_t", WAITED, c.Int(-1))
        if not self.plan.tensors and not self.plan.symbols:
            yield c.Evaluate(c.Cast("void", c.Name("bound")))

    def _sequence(self, body: Body, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        """Items in order. `needed`: somebody waits for what `after` holds at the end."""
        made = tuple(item for item in body.items if isinstance(item, Fresh))
        items = tuple(self._items(body, after, needed=needed))
        if made:   # in braces, because the tensors' names end with the body
            yield c.Block((*items, *(part for item in made for part in release(item, self.names))))
        else:
            yield from items

    def _items(self, body: Body, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        known = len(self.names.loops)
        for position, item in enumerate(body.items):
            later = needed or position + 1 < len(body.items)
            yield from self._collecting(body, position, self._item(item, after, needed=later))
            if isinstance(item, Receive):
                self.names.loops.extend(item.vars)
        del self.names.loops[known:]

    def _collecting(self, body: Body | PlanSides, position: int, item: Iterable[c.Stmt]) -> Iterator[c.Stmt]:
        """One item of a body, with joins around it for the handles that tasks behind it wait for."""
        closing = self.handles.closed_after(body, position)
        for handle in closing:
            yield from self._join_open(handle.variable)
        yield from item
        for handle in closing:
            yield from self._join_close(handle.variable, c.Int(-1), handle.variable)

    def _item(self, item: Item, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        frame = self.variables.frame
        if frame is None or frame.is_local or communicates(item) or isinstance(item, Fresh):
            yield from self._statement(item, after, needed=needed)
            return
        frame.is_local = True     # the statement never waits, so its variables are local
        body = tuple(self._statement(item, after, needed=needed))
        frame.is_local = False
        yield from (c.Block(body),) if any(isinstance(stmt, c.Declare) for stmt in body) else body

    def _statement(self, item: Item, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        match item:
            case Do(task):
                called = f" ({task.label})" if task.label else ""
                yield c.Comment(f"{task.span.short}: {self.plan.kernels[task.kernel].kernel.name}[{', '.join(task.labels)}]{called}")
                yield c.Block(tuple(submit(task, self.names, self.handles, after)))
            case Loop():
                yield from self._loop(item, after, needed=needed)
            case PlanSequence():
                yield from self._sequence(item, after, needed=needed)
            case SetSlot():
                yield c.Comment(f"{item.span.short}: slot {item.slot}")
                yield from ready(item.note, self.names, after)
                yield c.Assign(self.names.ref(f"slot_{item.slot}"), self.names.scalar(item.value))
            case Choice(branches, otherwise):
                yield from self._choice(branches, otherwise, after, needed=needed)
            case Sides():
                yield from self._free(after, needed, lambda inner, join: self._sides(item, after, inner, join))
            case Fresh():
                yield c.Comment(f"{item.span.short}: {self.plan.tensors[item.tensor].ref.shown}")
                yield from allocate(item, self.names, after)
            case Pipeline():
                yield c.Comment(f"{item.span.short}: {', '.join(process.name for process in item.processes)} side by side")
                yield c.Block(tuple(start_pipeline(item, self.names, after or "after")))
                self.definitions.extend(definition for process in item.processes for definition in self._process(item, process))
            case Send() | Receive() | Consume() | RecordEvent() | AwaitEvent():
                yield from communicate(item, self.names, self.handles, after or "after",
                                       lambda body: self._sequence(body, after, needed=True))
            case _:
                raise InternalError(f"{type(item).__name__} in a plan")

    def _loop(self, loop: PlanLoop, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        names = self.names
        yield from ready(loop.note, names, after)
        type_, name = names.variables.counter(names.var(loop.var))
        yield c.Comment(f"{loop.span.short}: for {loop.known_var.name}")
        start = names.scalar(loop.start)
        stop, step = (yield from self._bound("stop", loop.stop)), (yield from self._bound("step", loop.step))

        def around(body: tuple[c.Stmt, ...]) -> c.For:
            return c.For(type_, name, start, stop, step, (_IF_CANCELLED, *body), wraps=c.may_wrap(stop, step))

        names.loops.append(loop.var)
        through = tuple(self._through(loop, after))
        if loop.ordered:
            body = tuple(self._sequence(loop.body, after, needed=True))
            del names.loops[-len(loop.bound):]
            yield around((*through, *body))
            return

        def iteration(inner: str | None, join: str | None) -> Iterator[c.Stmt]:
            yield around((*through, *self._side(loop.body, after, inner, join)))
        yield from self._free(after, needed, iteration)
        del names.loops[-len(loop.bound):]

    def _bound(self, stem: str, node: s.Scalar) -> Generator[c.Stmt, None, c.Expr]:
        """Yield the declaration of a loop bound that the body may change, and return the bound's expression."""
        value = self.names.scalar(node)
        if not any(isinstance(leaf, s.Element | s.SlotValue) for leaf in s.leaves(node)):
            return value
        name = self.names.new(stem)
        yield from self.names.declare("const int64_t", name, value)
        return self.names.ref(name)

    def _through(self, loop: PlanLoop, after: str | None) -> Iterator[c.Stmt]:
        """What a position of a sparse row leads to, read in each iteration."""
        if loop.through is not None:
            yield from ready(loop.through.note, self.names, after)
            yield from self.names.declare("const int64_t", self.names.var(loop.through.var), self.names.scalar(loop.through.value))
            self.names.loops.append(loop.through.var)

    def _choice(self, branches: tuple[PlanBranch, ...], otherwise: Body, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        """The first branch, and in its else the rest: what a later condition reads is read only there."""
        if not branches:
            yield from self._sequence(otherwise, after, needed=needed)
            return
        first, rest = branches[0], branches[1:]
        yield c.Comment(f"{first.span.short}: {print_scalar(first.condition)}")
        yield from ready(first.note, self.names, after)
        then = tuple(self._sequence(first.body, after, needed=needed))
        yield c.If(self.names.scalar(first.condition), then, tuple(self._choice(rest, otherwise, after, needed=needed)))

    def _free(self, after: str | None, needed: bool, body: _Parts) -> Iterator[c.Stmt]:
        """Yield unordered parts. Each starts from `after`; if a statement waits for their end, a join of all ends replaces `after`."""
        if after is None:
            yield from body(None, None)
            return
        inner = self.names.new("after")
        if not needed:
            yield from body(inner, None)
            return
        join = self.names.new("join")
        yield from self._join_open(join)
        yield from body(inner, join)
        yield from self._join_close(join, self.names.ref(after), after)

    def _side(self, body: Body, after: str | None, inner: str | None, join: str | None) -> Iterator[c.Stmt]:
        """One unordered part: its own `after`, added to the join if it made a task."""
        if after is None or inner is None:
            yield from self._sequence(body, None, needed=False)
            return
        yield from self.names.declare("int64_t", inner, self.names.ref(after))
        yield from self._sequence(body, inner, needed=join is not None)
        if join is not None:
            moved = c.Infix("!=", self.names.ref(inner), self.names.ref(after))
            added = c.Call("sink->join_add", (c.Name("sink"), self.names.ref(join), self.names.ref(inner)))
            yield c.If(c.Infix("&&", moved, added), (c.Return(STATUS),))

    def _sides(self, whole: PlanSides, after: str | None, inner: str | None, join: str | None) -> Iterator[c.Stmt]:
        for position, side in enumerate(whole.sides):
            yield from self._collecting(whole, position, (c.Block(tuple(self._side(side, after, inner, join))),))

    def _process(self, pipeline: PlanPipeline, process: PlanProcess) -> Iterator[c.Definition]:
        """The frame and the function of a process; their order is that of the text, so that checks are numbered alike."""
        names, frame = self.names, Frame(records=records_all(process, self.plan))
        outer, names.touched, self.variables.frame = names.touched, set(), frame
        start = tuple(self._process_start(frame))
        body = tuple(self._sequence(process.body, "after" if self.plan.structure else None, needed=True))
        prologue = tuple(names.prologue(touched=True))
        names.touched, self.variables.frame = outer, None
        yield from process_definitions(pipeline, process, frame, prologue, start, body)

    def _process_start(self, frame: Frame) -> Iterator[c.Stmt]:
        if self.names.reads.slots:    # a process has waited for whatever the main program has waited for
            self.variables.wanted.add(WAITED)
            yield from self.names.declare("int64_t", WAITED, c.Member(RUN, WAITED, arrow=True))
        if frame.records:
            yield from self._join_open(ALL_TASKS)

    def _join_open(self, name: str) -> Iterator[c.Stmt]:
        yield from self.names.declare("int64_t", name, c.Call("sink->join_open", (c.Name("sink"),)))
        yield c.If(c.Infix("<", self.names.ref(name), c.Int(0)), (c.Return(STATUS),))

    def _join_close(self, join: str, empty: c.Expr, into: str) -> Iterator[c.Stmt]:
        yield c.Assign(self.names.ref(into), c.Call("sink->join_close", (c.Name("sink"), self.names.ref(join), empty)))
        yield c.If(STATUS, (c.Return(STATUS),))
