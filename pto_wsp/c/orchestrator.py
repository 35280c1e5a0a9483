"""Lower the body of a plan to the C orchestrator: loops stay loops, and each task is bound, checked, ordered and submitted.

Program order, if the plan asks for it, travels in a C variable: `after` is the node that the next statement waits for (-1: none). A task
waits for `after` and replaces it; all iterations of an unordered loop start from it and end in a join.

Processes of pipelines are in `orchestrator_pipelines.py`, single statements in `orchestrator_statements.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from pto_wsp.c import syntax as c
from pto_wsp.c.orchestrator_names import ALL_TASKS, RUN, STATUS, CNames, Frame, Variables
from pto_wsp.c.orchestrator_pipelines import communicate, process_definitions, records_all, run_start, run_struct, start_pipeline
from pto_wsp.c.orchestrator_statements import WAITED, allocate, ready, release, submit
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Do, Fresh, Loop, Pipeline, Receive, RecordEvent, Send, SetSlot, Sides, communicates
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.plan import Body, Item, PlanBranch, PlanLoop, PlanPipeline, PlanProcess, PlanSides, TaskPlan
from pto_wsp.ir.plan_walk import slots_used
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import HandleUses, handle_uses
from pto_wsp.values import dataclass

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
