"""Explain why a task ran when it did: what it waited for, what delayed it last, and the chain of causes back to the start.

>>> print(program.explain("attn[b=1]"))
task 5 attn[b=1]  (model.py:21)
  submitted at 0, ready at 200, ran from 320 to 640 on executor 1: 320 cycles
  delayed by its executor, which ran 1 attn[b=0] until 320
  waits for
     200  4 load[b=1]  RAW on q[1, 0:16, 0:64]

A chain covers the time from 0 to the completion of a task without gaps:

>>> print(program.explain(-1).chain())
640 cycles: 640 in 3 tasks
    0 .. 200  4 load[b=1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import RecordLimitError
from pto_wsp.ir.execution_rules import Release, WindowUnit
from pto_wsp.ir.flow import AwaitEvent, Consume, Receive, RecordEvent, Send, walk
from pto_wsp.ir.plan import PlanCommunication, TaskPlan
from pto_wsp.pickling import InOneProcess
from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import NodeKind, RecordColumns, Stall
from pto_wsp.run.simulator import STALL_REASONS, WAITS_FOR_ROOM, LastWait, SimResult
from pto_wsp.source import UNKNOWN, Span, here
from pto_wsp.timing.edges import Edge, TaskLike, find_task
from pto_wsp.timing.graph import RunGraph
from pto_wsp.timing.marked_edges import Completion, Moment
from pto_wsp.values import dataclass
from pto_wsp.wording import both_ends, counted

# phrases for how a task of a chain came to start, by kind of cause
_AFTER = {
    "not": "", "edge": "when what it waits for was there", "executor": "when its executor was free", "window": "when the window had room",
    "bytes": "when the window of bytes had room", "entries": "when the window of entries had room",
    "edges": "when the window of edges had room", "ready": "when fewer tasks were ready",
    "mark": "when its process went on", "release": "when timing released it", "start": "when the start policy let tasks run",
    "submit": "when it had been submitted", "dispatch": "when its AICPU dispatched it", "calendar": "when the calendar came to it",
    "link": "from the link before",
}

# causes of the makespan, as Chain.causes names them: what people read
CAUSE_NAMES: Mapping[str, str] = {
    "task": "the last task", "executor": "executors at work", "edge": "tasks waited for", "memory": "slower for others in memory",
    "latency": "latency of edges", "late": "late executors", "window": "window full", "bytes": "window of bytes full",
    "entries": "window of entries full", "edges": "window of edges full", "ready": "window of ready tasks full",
    "mark": "waits of processes", "CHANNEL_EMPTY_WAIT": "empty channels", "CHANNEL_FULL_WAIT": "full channels", "DATA_READ_WAIT": "reads",
    "EVENT_WAIT": "events", "release": "timing", "start": "start policy", "submit": "submission", "dispatch": "dispatch and retirement",
    "calendar": "calendar", "not": "unknown",
}

# causes of delays while no task of the chain runs, by kind of step, where they are called otherwise
_CAUSES = {"edge": "latency", "executor": "late", "retire": "dispatch"}


# -- chains ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Step:
    """An interval of a chain in cycles: a task runs (`kind` "task"), or something delays the next task.

    `held`: what the task waited for last, or what causes the delay: edge, executor, window, bytes, entries, edges, ready, mark,
    release, start, submit, dispatch, retire, calendar; "not": nothing; of a copy on a further link of its route: link. For a task,
    `behind`: what the next task of the chain waited for while this one ran, as `Chain.causes` names it; `pool`: that of its executor;
    `slower`: its cycles for others in memory.
    """

    begin: int
    end: int
    kind: str
    text: str
    task: int | None
    held: str
    behind: str = ""
    pool: int = 0
    slower: int = 0

    @property
    def cause(self) -> str:
        """The cause of the step's cycles, but for cycles lost in memory: a name of `Chain.causes`."""
        return self.behind if self.kind == "task" else _CAUSES.get(self.kind, self.kind)


def merge_submissions(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps with consecutive submissions merged into one."""
    run: list[Step] = []
    for step in steps:
        if run and (step.kind, step.task) != ("submit", None):
            yield _merge_run(run)
            run = []
        if (step.kind, step.task) == ("submit", None):
            run.append(step)
        else:
            yield step
    if run:
        yield _merge_run(run)


def _merge_run(run: Sequence[Step]) -> Step:
    if len(run) == 1:
        return run[0]
    return Step(run[0].begin, run[-1].end, "submit", f"the submission of {len(run)} tasks", None, "submit")


@dataclass(frozen=True, slots=True)
class Chain(Displayed):
    """Consecutive steps that account for the end of the last task."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def tasks(self) -> tuple[int, ...]:
        """The numbers of the chain's tasks."""
        return tuple(dict.fromkeys(step.task for step in self.steps if step.task is not None))

    @property
    def cycles(self) -> Mapping[str, int]:
        """Cycles by kind of step; `task`: cycles in which a task of the chain runs."""
        by_kind: Counter[str] = Counter()
        for step in self.steps:
            by_kind[step.kind] += step.end - step.begin
        return dict(by_kind)

    @property
    def causes(self) -> Mapping[str, int]:
        """Cycles by cause, most first; the sum is that of `cycles`.

        While a task of the chain runs, the next one waits: its cycles count for what the next one waits for (edge, executor, window, bytes,
        entries, edges, ready, calendar, mark, or the stall of a process as in `stats.stalls`). Those of the last task count for what held
        itself, or for `task` where no other task did. `memory`: cycles that tasks of the chain took longer for others in memory. What
        delays a task while none runs counts for itself: submit, dispatch (with the retirement), release, start, calendar,
        `latency` of edges, `late` executors.
        """
        found: Counter[str] = Counter()
        for step in self.steps:
            found["memory"] += step.slower
            found[step.cause] += step.end - step.begin - step.slower
        return {cause: cycles for cause, cycles in found.most_common() if cycles}

    @property
    def pools(self) -> Mapping[int, int]:
        """Cycles by pool, most first, in which a task of the chain ran while the next one waited for its executor."""
        found: Counter[int] = Counter()
        for step in self.steps:
            if step.behind == "executor":
                found[step.pool] += step.end - step.begin - step.slower
        return dict(found.most_common())

    def __str__(self) -> str:
        n = len(self.steps)
        end = self.steps[-1].end if n else 0
        by_kind = [f"{cycles} in {counted(len(self.tasks), 'task')}" if kind == "task" else f"{cycles} held by {kind}"
                   for kind, cycles in self.cycles.items() if cycles or kind == "task"]
        lines = [f"{counted(end, 'cycle')}: {', '.join(by_kind)}" if n else "no tasks"]
        width = len(str(end))

        def line(at: int) -> str:
            step = self.steps[at]
            text = f"{step.text}  {_AFTER[step.held]}".rstrip() if step.kind == "task" else f"  held by {step.text}"
            return f"  {step.begin:>{width}} .. {step.end:>{width}}  {text}"

        return "\n".join((*lines, *both_ends(n, line, lambda more: f"  … {more} more steps")))

    __repr__ = __str__


# -- one task ----------------------------------------------------------------------------------------------------------
Array = np.ndarray[Any, Any]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TaskWait:
    """A dependency of a task: the edge, its reason as text, the end of its source."""

    edge: Edge
    name: str
    reason: str
    ended: int


@dataclass(frozen=True, slots=True)
class Cause:
    """What delayed a task last, and the event behind the delay: the end or submission of a task, or the start of the run."""

    held: LastWait
    text: str
    moment: Moment


@dataclass(frozen=True, slots=True)
class LinkUse:
    """A copy on one link of its route, in cycles: when it came to the link, began, and had come over it; `behind`: the task before it."""

    link: str
    came: int
    began: int
    ended: int
    behind: str

    @property
    def wait(self) -> str:
        """What the copy waited for at the link, in words."""
        return f"{self.link}, which carried {self.behind} before" if self.behind else f"room at the far end of {self.link}"


@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, eq=False)
class Explanation(InOneProcess, Displayed):
    """One task in simulated time, in cycles. `span`: the user's line.

    `completed`: when the task's AICPU had retired it, so that successors saw its end. `cost`: the task's cycles without contention for
    memory. `hops`: of a copy over several links, when it was on each.
    """

    _instead: ClassVar[str] = "send its `chain()`, or its text"

    task: int
    name: str
    line: str
    submitted: int
    ready: int
    started: int
    ended: int
    completed: int
    cost: int
    executor: int
    cause: Cause
    waits: tuple[TaskWait, ...]
    explainer: Explainer
    span: Span = UNKNOWN
    hops: tuple[LinkUse, ...] = ()

    def chain(self) -> Chain:
        """Return the chain of causes from the start of the run to the completion of this task."""
        return self.explainer.chain(self.task)

    def __str__(self) -> str:
        slower = self.ended - self.started - self.cost - sum(hop.began - hop.came for hop in self.hops[1:])
        lines = [f"task {self.task} {self.name}  ({self.line})",
                 f"  submitted at {self.submitted}, ready at {self.ready}, ran from {self.started} to {self.ended} on "
                 f"executor {self.executor}: {counted(self.ended - self.started, 'cycle')}"
                 + f", {slower} of them for others in memory" * (slower > 0)
                 + f", retired at {self.completed}" * (self.completed > self.ended),
                 f"  delayed by {self.cause.text}"]
        lines += [f"  on {hop.link} from {hop.began} to {hop.ended}" + f", {hop.began - hop.came} cycles after it came: {hop.wait}" * (
            number > 0 and hop.began > hop.came) for number, hop in enumerate(self.hops)]
        shown = sorted(self.waits, key=lambda wait: -wait.ended)[:_SHOWN]
        lines += ["  waits for"] * bool(shown)
        width = len(str(max((wait.ended for wait in shown), default=0)))
        lines += [f"    {wait.ended:>{width}}  {wait.edge.source} {wait.name}  {wait.reason}" for wait in shown]
        return "\n".join(lines + [f"    … and {len(self.waits) - _SHOWN} more"] * (len(self.waits) > _SHOWN))

    __repr__ = __str__


class Explainer:
    """Explains the tasks of one simulated stream.

    Raises: R115 for one that is longer than a trace keeps.
    """

    def __init__(self, plan: TaskPlan, columns: RecordColumns, sim: SimResult, graph: RunGraph, places: Sequence[str] = ()) -> None:
        """Create the explainer. `places`: what the executors of a mesh are called."""
        times = sim.tasks
        if times is None or columns.first_node > 0:
            raise RecordLimitError(f"the run had {sim.n_tasks} tasks, more than a trace keeps", here(), help="explain a smaller run")
        self._plan, self._columns, self._graph = plan, columns, graph
        self._submit, self._ready, self._start, self._end = times.submit, times.ready, times.start, times.end
        self._complete, self._executor, self._held, self._held_by = times.complete, times.executor, times.held, times.held_by
        self._names = RecordNames(plan, columns)
        self._completion = Completion(columns, times.submit, times.complete)
        self._pools, self._hops, self._places = sim.pool, times.hops, places

    def explain(self, wanted: TaskLike | None) -> Explanation:
        """Return why a task ran when it did; None: the task that completed last.

        Raises: R112 for what names no task.
        """
        last = int(self._complete.argmax()) if wanted is None and len(self._complete) else 0
        task = find_task(self._names, last if wanted is None else wanted)
        waits = tuple(TaskWait(edge, self._names[edge.source], self._graph.reason(edge), int(self._end[edge.source]))
                      for edge in self._graph.edges.into([task]))
        hops = tuple(self._hop(at) for at in self._hops.of(task))
        return Explanation(task, self._names[task], self._names.span_of(task).short, int(self._submit[task]), int(self._ready[task]),
                           int(self._start[task]), int(self._end[task]), int(self._complete[task]),
                           int(self._columns.task_cost[task]), int(self._executor[task]),
                           self.cause(task), waits, self, self._names.span_of(task), hops)

    # -- single causes -------------------------------------------------------------------------------------------------

    def cause(self, task: int) -> Cause:
        """Return what delayed a task last."""
        held, moment = LastWait(int(self._held[task])), self._moment(task)
        by = "" if moment.task is None else f"{moment.task} {self._names[moment.task]}"
        match held:
            case LastWait.NOT:
                text = f"nothing: it started as soon as it was submitted, at {int(self._submit[task])}"
            case LastWait.EDGE:
                text = self._edge_text(task, moment, by)
            case LastWait.EXECUTOR if by:
                text = f"its executor, which ran {by} until {moment.time}"
            case LastWait.CALENDAR if by and self._held_by[task] >= 0:
                text = f"the calendar, in which {by} comes before it and ended at {moment.time}"
            case LastWait.READY if by:
                text = f"the {self._window_text(held)}, in which {by} made room when an executor took it at {moment.time}"
            case _ if held in WAITS_FOR_ROOM and by:
                text = f"the {self._window_text(held)}, in which {by} made room at {moment.time}"
            case LastWait.MARK:
                text = f"its process, which stood{self._mark_text(int(self._held_by[task]))} until {int(self._submit[task])}"
            case _:
                text = self._rule_text(held)
        return Cause(held, text, moment)

    def _moment(self, task: int) -> Moment:
        """Return the last event that had to happen before a task could run."""
        held, by = LastWait(int(self._held[task])), int(self._held_by[task])
        match held:
            case LastWait.EDGE | LastWait.MARK if by >= 0:
                return self._completion.of(by)[1]
            case LastWait.EXECUTOR | LastWait.CALENDAR if by >= 0:
                return Moment(self._left(by, int(self._executor[task])), by)
            case LastWait.READY if by >= 0:
                return Moment(int(self._submit[task]), by, is_taken=True)
            case _ if held in WAITS_FOR_ROOM and by >= 0:
                return Moment(int(self._complete[by]), by)
            case LastWait.NOT:
                return Moment(0)
            case LastWait.SUBMIT:
                return self._submission(task)[0]
            case LastWait.START:
                return self._opening(task)
            case _:
                return self._before(task)

    def _left(self, task: int, executor: int) -> int:
        """Return when a task left an executor: a copy over several links leaves each when it has come over it."""
        return next((int(self._hops.end[at]) for at in self._hops.of(task) if self._hops.executor[at] == executor), int(self._end[task]))

    def _edge_text(self, task: int, moment: Moment, by: str) -> str:
        if moment.task is None or moment.is_submitted:
            return f"what a process sends it{self._mark_text(int(self._held_by[task]))}, at {int(self._ready[task])}"
        reasons = [self._graph.reason(edge) for edge in self._graph.edges.into([task]) if edge.source == moment.task]
        ended, ready = int(self._end[moment.task]), int(self._ready[task])
        later = f", known to it at {ready}" if ready > ended else ""
        return f"{by}, which ended at {ended}{later}" + (f": {reasons[0]}" if reasons else "")

    def _rule_text(self, held: LastWait) -> str:
        rules = self._plan.rules
        match held:
            case LastWait.RELEASE:
                timing = {Release.BATCHED: f"batched({rules.release_n})", Release.RATE: "rate_limit"}.get(rules.release, "timing")
                return f"timing: {timing} had not released it"
            case LastWait.START:
                n = rules.start_after
                condition = "all tasks were" if n is None else f"{counted(n, 'task')} {'was' if n == 1 else 'were'}"
                return f"the start policy: nothing runs before {condition} submitted"
            case LastWait.SUBMIT:
                return f"submission: each task takes {counted(rules.submit_cycles, 'cycle')} to submit, and others came before it"
            case LastWait.DISPATCH:
                return (f"its AICPU, which takes {counted(rules.dispatch_cycles, 'cycle')} to dispatch a task and {rules.retire_cycles} to "
                        "retire one")
            case LastWait.CALENDAR:
                return "the calendar, which has it start then"
            case _ if held in WAITS_FOR_ROOM:
                return f"the {self._window_text(held)}"
            case _:
                return "its executor"

    def _window_text(self, held: LastWait) -> str:
        return self._plan.rules.window_of(WAITS_FOR_ROOM[held]).text

    def _mark_text(self, node: int) -> str:
        if self._columns.node_kind[node] == NodeKind.TASK:
            return ""
        at = int(np.searchsorted(self._columns.mark_node, node))
        item = self._items.get(int(self._columns.mark_site[at])) if at < len(self._columns.mark_node) and \
            self._columns.mark_node[at] == node else None
        return "" if item is None else f" at {item.span.short}"

    @cached_property
    def _items(self) -> dict[int, PlanCommunication]:
        return {item.site: item for item in walk(self._plan.body) if isinstance(item, Send | Receive | Consume | RecordEvent | AwaitEvent)}

    # -- chains of causes ----------------------------------------------------------------------------------------------

    def last_chain(self) -> Chain:
        """Return the chain of causes of the task that completed last, which makes up the makespan."""
        return self.chain(int(self._complete.argmax()))

    def chain(self, task: int) -> Chain:
        """Return the chain of causes from the start of the run to the completion of a task."""
        steps = self._retirement(task, int(self._complete[task]))
        seen: set[int] = set()
        current: int | None = task
        behind = "task"
        while current is not None and current not in seen:
            seen.add(current)
            at = len(steps)
            before, waited_for = self._step_back(steps, current)
            is_last = current == task
            until = steps[at - 1].begin if at else int(self._end[current])
            steps[at:at] = self._task_steps(current, waited_for if is_last and before is not None else behind, until)
            current, behind = before, waited_for
        steps.reverse()
        return Chain(tuple(merge_submissions(steps)))

    def _task_steps(self, task: int, behind: str, until: int) -> list[Step]:
        """Return the steps of a task, the last one first: one, or of a copy those on the links that it left until then, with its waits."""
        rows, name, cost = self._hops.of(task), f"{task} {self._names[task]}", int(self._columns.task_cost[task])
        if not rows:
            begin, end = int(self._start[task]), int(self._end[task])
            return [Step(begin, end, "task", name, task, self._held_name(task), behind, self._pools[self._executor[task]],
                         max(0, end - begin - cost))]
        steps: list[Step] = []
        for at in reversed([at for at in rows if self._hops.end[at] <= until]):
            hop = self._hop(at)
            slower = max(0, hop.ended - hop.began - cost // len(rows))
            steps.append(Step(hop.began, hop.ended, "task", f"{name} on {hop.link}", task,
                              self._held_name(task) if at == rows[0] else "link", behind, self._pools[self._hops.executor[at]], slower))
            if at > rows[0] and hop.began > hop.came:
                steps.append(Step(hop.came, hop.began, "executor", hop.wait, None, "executor"))
            behind = "edge"
        return steps

    def _hop(self, at: int) -> LinkUse:
        hops, by = self._hops, int(self._hops.held_by[at])
        executor = int(hops.executor[at])
        return LinkUse(self._places[executor] if self._places else f"executor {executor}", int(hops.ready[at]), int(hops.start[at]),
                   int(hops.end[at]), f"{by} {self._names[by]}" if by >= 0 else "")

    def _held_name(self, task: int) -> str:
        return LastWait(int(self._held[task])).name.lower()

    def _step_back(self, steps: list[Step], task: int) -> tuple[int | None, str]:
        """Append the steps between the start of a task and the end of its cause.

        Return the causing task, None at the start of the run, and what the end of that task made possible, as `Chain.causes` names it.
        """
        kind, behind = self._held_name(task), self._behind(task)
        until, moment, cycles = int(self._start[task]), self._moment(task), self._plan.rules.dispatch_cycles
        if cycles:
            steps.append(Step(until - cycles, until, "dispatch", f"the dispatch of {task}", None, "dispatch"))
            until -= cycles
        text = self.cause(task).text if moment.time < until else ""
        while True:
            if moment.time < until:
                steps.append(Step(moment.time, until, kind, text, None, kind))
            if moment.task is not None and moment.is_taken:
                until, kind = moment.time, self._held_name(moment.task)
                text, moment = self.cause(moment.task).text, self._moment(moment.task)
                continue
            if moment.task is None or not moment.is_submitted:
                steps += [] if moment.task is None else self._retirement(moment.task, moment.time)
                return moment.task, behind or "edge"
            until, kind, text = moment.time, "submit", f"the submission of {moment.task} {self._names[moment.task]}"
            moment, cause = self._submission(moment.task)
            behind = behind or cause

    def _behind(self, task: int) -> str:
        """Return what the end of another task does for this one, by what held it; "" for what no other task's end decides."""
        held, by = LastWait(int(self._held[task])), int(self._held_by[task])
        match held:
            case LastWait.EDGE | LastWait.MARK:
                return self._stall(by, task) or held.name.lower()
            case LastWait.CALENDAR if by < 0:
                return ""
            case LastWait.EXECUTOR | LastWait.CALENDAR:
                return held.name.lower()
            case _:
                return held.name.lower() if held in WAITS_FOR_ROOM else ""

    def _stall(self, node: int, task: int) -> str:
        """Return why a process stalls at a mark before a task, as in `Stats.stalls`; "" for a node that is no mark, or where none stalls.

        A process that waits at a channel for a task of its own waits for an edge.
        """
        at = int(np.searchsorted(self._columns.mark_node, node))
        if node < 0 or at >= len(self._columns.mark_node) or self._columns.mark_node[at] != node:
            return ""
        stall, streams = Stall(int(self._columns.mark_stall[at])), self._columns.task_stream
        by = self._completion.of(node)[1].task if stall in (Stall.CHANNEL_EMPTY, Stall.CHANNEL_FULL) else None
        return "edge" if by is not None and streams[by] == streams[task] else STALL_REASONS[stall]

    def _retirement(self, task: int, until: int) -> list[Step]:
        """Return the step between the end of a task and the time at which successors saw the end, if any."""
        ended = int(self._end[task])
        busy = until - self._plan.rules.retire_cycles
        text = f"the retirement of {task}" + f", its AICPU being busy until {busy}" * (busy > ended)
        return [Step(ended, until, "retire", text, None, "retire")] if until > ended else []

    def _before(self, task: int) -> Moment:
        """Return the last event before a rule delayed a task: the completion of its last dependency, or its submission."""
        submitted = int(self._submit[task])
        sources = [edge.source for edge in self._graph.edges.into([task])] if self._ready[task] > submitted else []
        if sources:
            source = max(sources, key=lambda source: int(self._complete[source]))
            return Moment(int(self._complete[source]), source)
        return Moment(submitted, task, is_submitted=True)

    def _opening(self, task: int) -> Moment:
        """Return the last submission before the start policy let a task run; submissions that depend on a completion do not count."""
        until = int(self._start[task]) - self._plan.rules.dispatch_cycles
        by_time = np.argsort(self._submit, kind="stable")
        for latest in map(int, by_time[:np.searchsorted(self._submit[by_time], until, side="right")][::-1]):
            first, _ = self._submission(latest)
            while first.task is not None and first.is_submitted:
                first, _ = self._submission(first.task)
            if first.task is None:
                return Moment(int(self._submit[latest]), latest, is_submitted=True)
        return Moment(0)

    def _submission(self, task: int) -> tuple[Moment, str]:
        """Return the event that a stream waited for before it submitted a task.

        With it comes what the end of another task does for the submission, as `Chain.causes` names it; "" after another submission.
        """
        time, behind = int(self._submit[task]), ""
        if time == 0:
            return Moment(0), behind
        held, by = LastWait(int(self._held[task])), int(self._held_by[task])
        if held in WAITS_FOR_ROOM or held is LastWait.MARK:
            behind = self._behind(task)
        if held is LastWait.READY and by >= 0:
            return Moment(time, by, is_taken=True), behind
        if held in WAITS_FOR_ROOM and by >= 0:
            return Moment(int(self._complete[by]), by), behind
        if held is LastWait.MARK and by >= 0:
            return self._completion.of(by)[1], behind
        mark = self._completion.blocking_mark_before(task)
        if mark is not None and self._completion.of(mark)[0] == time:
            return self._completion.of(mark)[1], self._stall(mark, task) or "mark"
        moment = self._submitted_after(task, time)
        return moment, "" if moment.is_submitted or moment.task is None else "ready" if moment.is_taken else "window"

    def _submitted_after(self, task: int, time: int) -> Moment:
        """Return the stream's previous submission if its cost delayed this one; otherwise the completion that freed a window slot."""
        before = int(self._completion.before_in_stream[self._columns.task_node[task]])
        while before >= 0 and self._columns.node_task[before] < 0:
            before = int(self._completion.before_in_stream[before])
        cycles = self._plan.rules.submit_cycles
        if cycles and before >= 0:
            earlier = int(self._columns.node_task[before])
            if int(self._submit[earlier]) + cycles == time:
                return Moment(int(self._submit[earlier]), earlier, is_submitted=True)
        mine = self._columns.task_stream[:task] == self._columns.task_stream[task]
        taken = np.flatnonzero(mine & (self._start[:task] - self._plan.rules.dispatch_cycles == time))
        if len(taken) and any(bound.unit is WindowUnit.READY for bound in self._plan.rules.windows):
            return Moment(time, int(taken[-1]), is_taken=True)
        complete = np.flatnonzero(mine & (self._complete[:task] <= time))
        if self._plan.rules.window and len(complete):
            freed = int(complete[np.argmax(self._complete[complete])])
            return Moment(int(self._complete[freed]), freed)
        return Moment(0)
