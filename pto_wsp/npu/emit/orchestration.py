"""Emit the orchestration of a package: C++ that tests the guards of a plan and then submits its tasks in program order.

The C++ keeps the loops and forks of the plan. Program order that must be stated travels in a list of task ids, `after`: the ids that
the next statement waits for. All iterations of an unordered loop start from the same list, and the ids with which they end replace the list
after the loop.

Each process of a pipeline is a closure that resumes where it stopped, with a frame for the variables that outlive its
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
from functools import partial
from typing import assert_never

from pto_wsp.c import syntax as c
from pto_wsp.c.printer import comment_text, print_stmts
from pto_wsp.c.render import CComment, CIdent, TemplateUnit, render
from pto_wsp.c.resume import ResumableFrame
from pto_wsp.c.syntax import c_ident
from pto_wsp.errors import InternalError, raise_all
from pto_wsp.ir import scalar as s
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
    Sides,
    Silent,
    SilentItem,
    assignments,
    communicates,
    leaves,
    walk,
)
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.plan import Precondition, is_float_symbol
from pto_wsp.ir.waits import TrackedHandle
from pto_wsp.npu.emit.orchestration_launches import is_many, join, launch_task
from pto_wsp.npu.emit.orchestration_scope import (
    SELF,
    FunctionScope,
    LoweringState,
    call,
    cpp_name,
    extents_array,
    lower_guards,
    runtime_dtype,
    text_literal,
    unless_within,
)
from pto_wsp.npu.plan.arguments import allocated_by_launches, tensor_directions
from pto_wsp.npu.plan.descriptors import runtime_errors
from pto_wsp.npu.plan.guards import Checked, Late, guards_of
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
    Scope,
)
from pto_wsp.npu.plan.places import IntermediateOf, Resource, Statement, TaskItems, TensorOf, n_launches, statements, surely_submits
from pto_wsp.npu.plan.waits import UNKNOWN_TASKS, last_tasks, waits_of
from pto_wsp.source import Span


def lower_body(state: LoweringState) -> tuple[c.Stmt, ...]:
    """Return the statements of the body."""
    plan = state.scope.plan
    after = state.scope.names.take("after") if state.waits.order.waits else None
    body = tuple(_block(state, plan.body, after))
    opening: list[c.Stmt] = []
    for resource in state.waits.reads.tensors:
        if isinstance(resource, TensorOf) and not plan.tensors[resource.slot].fresh:
            opening.append(_list_of(state, resource))
    if after is not None:
        opening.append(state.ids(after))
    return (*opening, *body)


def _block(state: LoweringState, block: NpuBody, after: str | None) -> Iterator[c.Stmt]:
    """Yield the statements of a body in order. `after`: the id list that they wait for and update; None if nothing waits."""
    parts = statements(block)
    for position, statement in enumerate(parts):
        for handle in state.waits.handles.closed_after(block, position):
            yield _opened(state, handle)
        yield from _statement(state, statement, after, alone=block is state.scope.plan.body and len(parts) == 1)


def _statement(state: LoweringState, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
    """Yield a statement. Inside a process, a statement that never waits has a block of its own, with local variables.

    `alone`: the statement is the whole body of the plan.
    """
    frame = state.frame
    if frame is None or (not isinstance(statement, TaskItems) and communicates(statement)):
        if frame is not None and isinstance(statement, Scope):
            raise InternalError("a scope of a process would still be open while the process waits")
        yield from _lower(state, statement, after, alone=alone)
        return
    state.frame, names = None, state.scope.names
    state.scope.names = names.inner()
    body = tuple(_lower(state, statement, after, alone=alone))
    state.frame, state.scope.names = frame, names
    yield c.Block(body)


def _lower(state: LoweringState, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
    match statement:
        case TaskItems():
            yield from _task(state, statement, after, alone=alone)
        case Loop():
            yield from _loop(state, statement, after)
        case Choice():
            for position in range(len(statement.bodies)):
                for handle in state.waits.handles.closed_after(statement, position):
                    yield _opened(state, handle)
            yield from _choose(state, statement, 0, after)
        case Silent():
            yield from _set(state, statement)
        case Scope():
            yield from _scope(state, statement, partial(_block, state, statement, after), implicit=alone)
        case PlanSequence():
            yield from _block(state, statement, after)
        case Sides():
            yield from _sides(state, statement, after)
        case Pipeline() | Consume() | Send() | Receive() | RecordEvent() | AwaitEvent():
            yield from _communicate(state, statement, after)
        case _:
            assert_never(statement)


def _opened(state: LoweringState, handle: TrackedHandle) -> c.Stmt:
    """Return the declaration of the list of task ids that a handle collects."""
    state.handles[handle] = state.list_name(handle.variable)
    return state.ids(state.handles[handle])


def _loop(state: LoweringState, loop: NpuLoop, after: str | None) -> Iterator[c.Stmt]:
    yield c.Comment(f"{loop.span.short}: for {loop.known_var.name}")
    yield from _checked(state, loop)
    yield from _joined(state, after, loop.body)
    if after is None or not _is_named(state, loop.body):
        yield from _for(state, loop, partial(_block, state, loop.body, after), {after})
    elif loop.ordered:
        yield from _for(state, loop, partial(_block, state, loop.body, after), set())
    else:
        ends = state.list_name("ends") if _is_waited_for(state, loop.body) else ""
        if ends:
            yield state.ids(ends)
        yield from _for(state, loop, partial(_unordered_part, state, loop.body, after, ends), {after})
        if ends:
            yield _replaced(state, after, ends)


def _choose(state: LoweringState, fork: NpuChoice, position: int, after: str | None) -> Iterator[c.Stmt]:
    """Yield the branches of a choice from number `position` on. Each branch updates `after` for what comes next."""
    if position == len(fork.branches):
        yield from _block(state, fork.otherwise, after)
        return
    way = fork.branches[position]
    yield c.Comment(f"{way.span.short}: {'elif' if position else 'when'}")
    yield from _checked(state, way)
    asked = state.scope.scalar(way.condition)
    names, short = state.scope.names, state.short
    bodies: list[tuple[c.Stmt, ...]] = []
    known: list[set[str]] = []
    for part in (_block(state, way.body, after), _choose(state, fork, position + 1, after)):
        state.scope.names, state.short = names.inner(), set(short)
        bodies.append(tuple(part))
        known.append(state.short)
    state.scope.names, state.short = names, known[0] & known[1]
    yield c.If(asked, bodies[0], bodies[1])


def _set(state: LoweringState, item: SilentItem[Precondition, int]) -> Iterator[c.Stmt]:
    if isinstance(item, Fresh):
        raise InternalError("a tensor made outside a scope")
    yield from _checked(state, item)
    yield from (c.Assign(state.scope.slot(place.slot), state.scope.scalar(value)) for place, value in assignments(item))


def _checked(state: LoweringState, item: Checked) -> Iterator[c.Stmt]:
    """Yield the late checks of an item: if one fails, no more tasks are submitted."""
    for check in state.late.checks_of(item):
        yield unless_within(check, state.scope, state.leave, "no more tasks are submitted")


def _sides(state: LoweringState, whole: NpuSides, after: str | None) -> Iterator[c.Stmt]:
    for side in whole.sides:
        yield from _joined(state, after, side)
    ends = state.list_name("ends") if after is not None and any(map(partial(_is_waited_for, state), whole.sides)) else ""
    if ends:
        yield state.ids(ends)
    for position, side in enumerate(whole.sides):
        for handle in state.waits.handles.closed_after(whole, position):
            yield _opened(state, handle)
        yield from _block(state, side, None) if after is None else _unordered_part(state, side, after, ends)
    if ends and after is not None:
        yield _replaced(state, after, ends)


def _unordered_part(state: LoweringState, body: NpuBody, after: str, ends: str) -> Iterator[c.Stmt]:
    """Yield one of several unordered parts. `after`: the ids that the part waits for; `ends`: the list, or "", that takes its last ids."""
    if not _is_named(state, body):
        yield from _block(state, body, after)
        return
    parts = statements(body)
    if len(parts) == 1 and isinstance(parts[0], TaskItems) and not state.waits.handles.closed_after(body, 0):
        yield from _task(state, parts[0], after, alone=False, ends=ends)
        return
    inner = state.list_name("after")
    yield state.ids(inner, after)
    if after in state.short:
        state.short.add(inner)
    yield from _block(state, body, inner)
    if ends:
        added = call(f"{ends}.add", c.Name(inner))
        yield added if surely_submits(body) else c.If(c.Prefix("!", c.Call(f"{inner}.is", (c.Name(after),))), (added,))


def _replaced(state: LoweringState, after: str, ends: str) -> c.Stmt:
    """Return the statement that moves `ends` to `after` unless `ends` is empty."""
    state.short.discard(after)
    return c.If(c.Infix(">", c.Call(f"{ends}.size", ()), c.Int(0)), (c.Assign(c.Name(after), c.Name(ends)),))


def _joined(state: LoweringState, after: str | None, body: NpuBody) -> Iterator[c.Stmt]:
    """Yield the join of the ids in `after`, if several tasks of a body wait for many of them."""
    bounds = [state.waits.order.waits.get(launch.source, 0) for launch in leaves(body)]
    if after is not None and any(map(is_many, bounds)):
        yield from join(state, after)


def _is_waited_for(state: LoweringState, body: NpuBody) -> bool:
    """Return whether a later task waits for the last tasks of a body."""
    lasts = last_tasks(body)
    return UNKNOWN_TASKS in lasts or not state.waits.order.counts.isdisjoint(lasts)


def _is_named(state: LoweringState, body: NpuBody) -> bool:
    """Return whether any task waits for a task of a body."""
    return communicates(body) or any(launch.source in state.waits.order.counts for launch in leaves(body))


def _for(state: LoweringState, loop: NpuLoop, body: Callable[[], Iterator[c.Stmt]], unchanged: AbstractSet[str | None]) -> Iterator[c.Stmt]:
    """Yield a loop. `unchanged`: id lists that no iteration changes."""
    names, short = state.scope.names, state.short
    start = state.scope.scalar(loop.start)
    (before, stop), (also, step) = (state.once(node, f"{c.c_ident(loop.var.name)}_{what}")
                                    for node, what in ((loop.stop, "stop"), (loop.step, "step")))
    yield from (*before, *also)
    state.scope.names, state.short = names.inner(), {name for name in short if name in unchanged}
    type_, name = state.counter(loop.var)
    state.depth += 1
    lead = () if loop.through is None else tuple(_checked(state, loop.through))
    inner = tuple(body())
    if loop.through is not None:
        lead = (*lead, *state.let(loop.through.var, loop.through.value))
        inner = (*lead, *inner)
    state.depth -= 1
    state.scope.names, state.short = names, {name for name in short if name in unchanged}
    yield c.For(type_, name, start, stop, step, inner, wraps=c.may_wrap(stop, step))


def _scope(state: LoweringState, scope: Scope, body: Callable[[], Iterator[c.Stmt]], *, implicit: bool) -> Iterator[c.Stmt]:
    """Yield a body in a scope of the runtime; without a scope if nothing is allocated, or if the allocation lives to the end."""
    state.created.update({own.id: (own, state.depth) for own in scope.intermediates})
    resources = (*(IntermediateOf(own.id) for own in scope.intermediates),
                 *(TensorOf(slot) for slot in scope.tensors if state.scope.plan.tensors[slot].fresh))
    opening = tuple(_list_of(state, resource) for resource in resources if resource in state.waits.reads.tensors)
    if implicit or not (scope.intermediates or scope.tensors):
        yield from (*_allocated(state, scope), *opening, *body())
        return
    names = state.scope.names
    state.scope.names = names.inner()
    yield c.Block((*_allocated(state, scope), *opening, *body()), "PTO_WSP_SCOPE")
    state.scope.names = names


def _list_of(state: LoweringState, resource: Resource) -> c.Stmt:
    """Return the declaration of the list of a tensor's readers since its last write.

    The list keeps the readers' windows, except for an intermediate, which tasks read whole.
    """
    match resource:
        case IntermediateOf():
            return state.ids(state.readers(resource))
        case TensorOf(slot):
            state.scope.features.add("PTO_WSP_EDGES")
            return c.Construct(f"pto_wsp::Readers<{state.scope.plan.tensors[slot].ref.rank}>", state.readers(resource))


def _allocated(state: LoweringState, scope: Scope) -> Iterator[c.Stmt]:
    """Yield the allocations of the workload's intermediate tensors that no launch allocates."""
    plan, known = state.scope.plan, allocated_by_launches(scope)
    for slot in scope.tensors:
        if slot in known:
            continue
        state.scope.features.add("PTO_WSP_NEW_TENSORS")
        ref, tensor = plan.tensors[slot].ref, state.scope.tensor(slot)
        shape, made = (c.Name(state.scope.names.take(f"{tensor.text}_{what}")) for what in ("shape", "made"))
        yield c.Comment(f"{ref.dtype} {list(ref.shape)}, from task to task")
        yield extents_array(shape, map(c.Int, ref.shape))
        yield c.Declare("auto", made.text, c.Call("pto_wsp::allocate", (shape, runtime_dtype(ref.dtype))))
        yield c.Declare("const pto_wsp::Tensor &", tensor.text, c.Call(f"{made.text}.get_ref", (c.Int(0),)))


def _task(state: LoweringState, task: TaskItems, after: str | None, *, alone: bool, ends: str = "") -> Iterator[c.Stmt]:
    """Yield the statements of a task. If a statement waits for the task, its ids go to `ends`, or replace those in `after`."""
    first = task.launches[0]
    kernel = state.scope.plan.kernels[first.kernel].kernel.name
    yield c.Comment(f"{first.span.short}: {kernel}[{', '.join(first.labels)}]")
    for launch in task.launches:
        yield from _checked(state, launch)
    yield from _read_elements(state, task)
    if ends or after is None or task.source not in state.waits.order.counts:
        yield from _parts(state, task.items, after, ends if task.source in state.waits.order.counts else "", alone=alone)
    elif len(task.items) == 1 and isinstance(task.items[0], Do):
        yield from launch_task(state, task.items[0].leaf, after, after, replaces=True)
    else:
        own = state.list_name("ends")
        yield state.ids(own)
        yield from _parts(state, task.items, after, own, alone=alone)
        always = any(n_launches(item) not in (None, 0) for item in task.items)
        state.short.discard(after)
        yield c.Assign(c.Name(after), c.Name(own)) if always else _replaced(state, after, own)
    state.scope.held = {}


def _read_elements(state: LoweringState, task: TaskItems) -> Iterator[c.Stmt]:
    """Yield the reads of the elements that tasks write: once a task, since a part of the task may overwrite them."""
    own = tuple(inner.intermediates for item in task.items for inner in walk(item) if isinstance(inner, Scope))
    for node in state.late.waited_for((own, tuple((launch.arguments, launch.scalars) for launch in task.launches))):
        name = state.scope.names.take(f"{state.scope.tensor_name(node.tensor)}_value")
        yield c.Declare("const double" if node.tensor.dtype.is_float else "const int64_t", name, state.scope.scalar(node))
        state.scope.held[node] = c.Name(name)


def _parts(state: LoweringState, items: tuple[NpuItem, ...], after: str | None, ends: str, *, alone: bool) -> Iterator[c.Stmt]:
    for item in items:
        match item:
            case Do(launch):
                yield from launch_task(state, launch, after, ends)
            case Scope(inside):
                yield from _scope(state, item, partial(_parts, state, inside, after, ends, alone=False),
                                       implicit=alone and len(items) == 1)
            case Loop(body=body):
                yield from _for(state, item, partial(_parts, state, body.items, after, ends, alone=False), {after})
            case Sides(parts) | PlanSequence(parts):
                yield from _parts(state, parts, after, ends, alone=False)


# -- pipelines -------------------------------------------------------------------------------------


_STREAM = c.Name("self.stream")
_LEAVES = c.Name("pto_wsp::Step::LEAVES")


def _communicate(state: LoweringState, statement: NpuPipeline | NpuCommunication, after: str | None) -> Iterator[c.Stmt]:
    """Yield a pipeline, or what a process in it does with channels and events."""
    if isinstance(statement, Pipeline):
        yield from _network(state, statement, after)
        return
    plan, list_ = state.scope.plan, after or state.nothing
    state.short.discard(list_)
    match statement:
        case Send():
            yield from _send(state, statement, list_)
        case Receive(channel, variables):
            called = state.channels[channel]
            yield c.Comment(f"{statement.span.short}: receive")
            what = f"receive({plan.channels[channel].name})"
            may = c.Call(f"{called}.may_take", (_STREAM, c.Name(list_)))
            yield _wait(state, may, statement.span, what, c.Call(f"{called}.drained", ()))
            yield from _take(state, channel, variables, list_)
        case Consume(channel, variables, body):
            called = state.channels[channel]
            yield c.Comment(f"{statement.span.short}: consume")
            what = f"consume({plan.channels[channel].name})"
            wait = _wait(state, c.Call(f"{called}.may_take", (_STREAM, c.Name(list_))), statement.span, what)
            names = state.scope.names
            state.scope.names = names.inner()
            taken = tuple(_take(state, channel, variables, list_))
            inner = tuple(_block(state, body, after))
            state.scope.names = names
            state.short.discard(list_)
            assert isinstance(wait, c.Block)
            label, asks = wait.body
            yield c.Forever((label, c.If(c.Call(f"{called}.drained", ()), (c.Break(),)), asks, *taken, *inner))
        case RecordEvent(event):
            yield c.Comment(f"{statement.span.short}: record")
            yield call(f"{state.events[event]}.record", c.Name(list_))
        case AwaitEvent(event):
            called = state.events[event]
            yield c.Comment(f"{statement.span.short}: synchronize")
            count = c.Name(state.keep(f"{SELF}awaited_{event}", "int64_t"))
            yield _wait(state, c.Call(f"{called}.has", (count,)), statement.span, f"synchronize({plan.events[event]})")
            yield call(f"{called}.await", count, c.Name(list_))
            yield c.Assign(count, c.Int(1), "+=")


def _send(state: LoweringState, send: NpuSend, after: str) -> Iterator[c.Stmt]:
    called = state.channels[send.channel]
    yield c.Comment(f"{send.span.short}: send")
    yield _wait(state, c.Call(f"{called}.may_send", (_STREAM,)), send.span, f"send({state.scope.plan.channels[send.channel].name})")
    frame, state.frame = state.frame, None
    checks = tuple(_checked(state, send))
    values = tuple(map(state.scope.scalar, send.payload)) or (c.Int(0),)
    state.frame = frame
    token = c.Declare("const int64_t", "token", c.Braces(values), array=(len(values),))
    yield c.Block((*checks, token, call(f"{called}.send", c.Name("token"), c.Name(after))))


def _take(state: LoweringState, channel: int, variables: tuple[s.Var, ...], after: str) -> Iterator[c.Stmt]:
    taken = c.Call(f"{state.channels[channel]}.take", (c.Name(after),))
    if not variables:
        yield c.Evaluate(taken)
        return
    values = (c.Assign(c.Name(state.frame_variable(var)), c.Index(c.Name("token"), c.Int(k))) for k, var in enumerate(variables))
    yield c.Block((c.Declare("const int64_t *const", "token", taken), *values))


def _wait(state: LoweringState, may: c.Expr, span: Span, what: str, never: c.Expr | None = None) -> c.Stmt:
    """Return the resume label of a wait, and the return to the scheduler if the process cannot continue.

    `never`: the condition that the wait will never end.
    """
    if state.frame is None:
        raise InternalError("a process waits where it has no frame", what)
    label, number = state.frame.wait()
    where = text_literal(f"{span.short}: {what}")
    waits = c.Return(c.Call("network.waits", (c.Name("self.at"), c.Int(number), where)))
    says = text_literal(f"{span.short}: {what}: no token will come")
    ends = () if never is None else (c.If(never, (c.Return(c.Call("network.leaves", (says,))),)),)
    return c.Block((c.Label(label), *ends, c.If(c.Prefix("!", may), (waits,))))


def _network(state: LoweringState, network: NpuPipeline, after: str | None) -> Iterator[c.Stmt]:
    yield c.Comment(f"{network.span.short}: {', '.join(stage.name for stage in network.processes)}")
    names = state.scope.names
    state.scope.names = names.inner()
    state.scope.features.add("PTO_WSP_EDGES")
    yield c.Block(tuple(_network_body(state, network, after)))
    state.scope.names = names


def _network_body(state: LoweringState, network: NpuPipeline, after: str | None) -> Iterator[c.Stmt]:
    plan, names = state.scope.plan, state.scope.names
    yield c.Construct("pto_wsp::Network", "network")
    for number in network.channels:
        channel = plan.channels[number]
        called = state.channels[number] = names.take(cpp_name(f"channel_{channel.name}"))
        yield c.Construct(f"pto_wsp::Channel<{channel.n_payload}>", called, (c.Name("network"), text_literal(channel.name),
                                                                           c.Int(channel.depth),
                                                                           *((c.Int(channel.initial),) if channel.initial else ())))
        for does, streams in (("gives", channel.producers), ("takes", channel.consumers)):
            yield from (call(f"{called}.{does}", c.Int(stream)) for stream in streams)
    for number in network.events:
        called = state.events[number] = names.take(cpp_name(f"event_{plan.events[number]}"))
        yield c.Construct("pto_wsp::Event", called, (c.Name("network"), text_literal(plan.events[number])))
    if after is None:
        state.nothing = names.take("none")
        yield state.ids(state.nothing)
    cases: list[c.Stmt] = []
    frames: list[str] = []
    for stage in network.processes:
        name = names.take(cpp_name(stage.name))
        process, frame = names.take(f"{name}_process"), names.take(f"{name}_frame")
        yield from _stage(state, stage, after, name, process, frame)
        for replica in range(stage.replicas):
            own = f"{name}[{replica}]"
            frames.append(own)
            cases.append(c.If(c.Infix("==", c.Name("stream"), c.Int(stage.stream + replica)),
                              (c.Return(c.Call(process, (c.Name(own),))),)))
    yield c.Closure("run", "int stream", "pto_wsp::Step", (*cases, c.Return(_LEAVES)))
    ran = c.Call("network.run", (c.Int(network.processes[0].stream), c.Int(len(frames)), c.Name("run")))
    yield c.If(c.Prefix("!", ran), (state.leave,))
    if after is not None:
        ends = names.take("ends")
        yield state.ids(ends)
        for own in frames:
            moved = c.Prefix("!", c.Call(f"{own}.after.is", (c.Name(after),)))
            yield c.If(moved, (call(f"{ends}.add", c.Name(f"{own}.after")),))
        yield _replaced(state, after, ends)


def _stage(state: LoweringState, stage: NpuProcess, after: str | None, name: str, process: str, frame: str) -> Iterator[c.Stmt]:
    """Yield the frame type of a process, a frame for each replica, and its function."""
    outer = (state.frame, state.leave, state.short, state.scope.names)
    own = state.frame = ResumableFrame({"at": "int", "stream": "int"})
    state.leave, state.short, state.scope.names = c.Return(_LEAVES), set(), state.scope.names.inner()
    list_ = None
    if after is not None:
        state.scope.names.take("after")
        list_ = state.keep(f"{SELF}after", "pto_wsp::Ids")
    body = tuple(_block(state, stage.body, list_))
    state.frame, state.leave, state.short, state.scope.names = outer
    yield c.Comment(f"{stage.span.short}: process {stage.name}")
    yield own.struct(frame)
    yield c.Declare(frame, name, c.Braces(()), array=(stage.replicas,))
    for replica in range(stage.replicas):
        yield c.Assign(c.Name(f"{name}[{replica}].stream"), c.Int(stage.stream + replica))
        if after is not None:
            yield c.Assign(c.Name(f"{name}[{replica}].after"), c.Name(after))
    resumed = own.resume(c.Name("self.at")) or (c.Evaluate(c.Cast("void", c.Name("self"))),)
    yield c.Closure(process, f"{frame} &self", "pto_wsp::Step", (*resumed, *body, c.Return(c.Name("pto_wsp::Step::ENDS"))))


# -- the file --------------------------------------------------------------------------------------


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
    body = lower_body(LoweringState(entry, waits_of(plan), late))
    checked = FunctionScope(plan)
    guards = tuple(lower_guards(guards_of(plan, late), checked))
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


def _lines(body: Sequence[c.Stmt]) -> tuple[str, ...]:
    return tuple(print_stmts(body, 1, comment="//"))
