"""Why a task ran when it did: what it waited for, what delayed it last, and the chain of causes back to the beginning.

>>> print(program.explain("attn[b=1]"))
task 5 attn[b=1]  (model.py:21)
  submitted at 0, ready at 200, ran from 320 to 640 on executor 1: 320 cycles
  delayed by its executor, which ran 1 attn[b=0] until 320
  waits for
     200  4 load[b=1]  RAW on q[1, 0:16, 0:64]
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from pto_wsp.errors import ProgramStateError
from pto_wsp.plan.model import AwaitEvent, Consume, Receive, RecordEvent, Send, TaskPlan
from pto_wsp.plan.rules import Release
from pto_wsp.plan.walk import items_of
from pto_wsp.report.chain import Chain, Step, together
from pto_wsp.report.completion import Completion, Moment
from pto_wsp.report.edges import Edge
from pto_wsp.report.graph import TaskGraph
from pto_wsp.report.tasks import TaskLike, find_task
from pto_wsp.runtime.failures.errors import TaskNames
from pto_wsp.runtime.native.simulator import Held, SimResult
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.marks import NodeKind
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import counted

Array = np.ndarray[Any, Any]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Wait:
    """What a task waits for: the edge, its reason as text, when its source ended."""

    edge: Edge
    name: str
    reason: str
    ended: int


@dataclass(frozen=True, slots=True)
class Cause:
    """What delayed a task last, and the moment behind it: the end or the submission of a task, or the beginning."""

    held: Held
    text: str
    moment: Moment


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One task in simulated time, in cycles. `completed`: when its AICPU had retired it, so that others saw its end. `cost`: without what
    others in memory slow it down by."""

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
    waits: tuple[Wait, ...]
    explainer: Explainer

    def chain(self) -> Chain:
        """Return the causes one after another, from the beginning to the completion of this task."""
        return self.explainer.chain(self.task)

    def __str__(self) -> str:
        slower = self.ended - self.started - self.cost
        lines = [f"task {self.task} {self.name}  ({self.line})",
                 f"  submitted at {self.submitted}, ready at {self.ready}, ran from {self.started} to {self.ended} on "
                 f"executor {self.executor}: {counted(self.ended - self.started, 'cycle')}"
                 + f", {slower} of them for others in memory" * (slower > 0)
                 + f", retired at {self.completed}" * (self.completed > self.ended),
                 f"  delayed by {self.cause.text}"]
        shown = sorted(self.waits, key=lambda wait: -wait.ended)[:_SHOWN]
        lines += ["  waits for"] * bool(shown)
        width = len(str(max((wait.ended for wait in shown), default=0)))
        lines += [f"    {wait.ended:>{width}}  {wait.edge.source} {wait.name}  {wait.reason}" for wait in shown]
        return "\n".join(lines + [f"    … and {len(self.waits) - _SHOWN} more"] * (len(self.waits) > _SHOWN))

    __repr__ = __str__


class Explainer:
    """Explains the tasks of one simulated stream.

    Raises: R103 for one that is longer than a trace keeps.
    """

    def __init__(self, plan: TaskPlan, columns: RecordColumns, sim: SimResult, graph: TaskGraph) -> None:
        times = sim.tasks
        if times is None or columns.first_node > 0:
            raise ProgramStateError(f"the run had {sim.n_tasks} tasks, more than a trace keeps", here(), help="explain a smaller run")
        self._plan, self._columns, self._graph = plan, columns, graph
        self._submit, self._ready, self._start, self._end = times.submit, times.ready, times.start, times.end
        self._complete, self._executor, self._held, self._held_by = times.complete, times.executor, times.held, times.held_by
        self._names = TaskNames(plan, columns)
        self._completion = Completion(columns, times.submit, times.complete)

    def explain(self, wanted: TaskLike | None) -> Explanation:
        """Return why a task ran when it did; None: the task that completed last.

        Raises: T205 for what names no task.
        """
        last = int(self._complete.argmax()) if wanted is None and len(self._complete) else 0
        task = find_task(self._names, last if wanted is None else wanted)
        waits = tuple(Wait(edge, self._names[edge.source], self._graph.reason(edge), int(self._end[edge.source]))
                      for edge in self._graph.edges.into([task]))
        return Explanation(task, self._names[task], self._names.span_of(task).short, int(self._submit[task]), int(self._ready[task]),
                           int(self._start[task]), int(self._end[task]), int(self._complete[task]),
                           int(self._columns.task_cost[task]), int(self._executor[task]),
                           self.cause(task), waits, self)

    # ---- one cause ----

    def cause(self, task: int) -> Cause:
        """Return what delayed a task last."""
        held, moment = Held(int(self._held[task])), self._moment(task)
        by = "" if moment.task is None else f"{moment.task} {self._names[moment.task]}"
        match held:
            case Held.NOT:
                text = f"nothing: it started as soon as it was submitted, at {int(self._submit[task])}"
            case Held.EDGE:
                text = self._edge_text(task, moment, by)
            case Held.EXECUTOR if by:
                text = f"its executor, which ran {by} until {moment.time}"
            case Held.CALENDAR if by and self._held_by[task] >= 0:
                text = f"the calendar, in which {by} comes before it and ended at {moment.time}"
            case Held.WINDOW if by:
                text = f"the {self._plan.rules.window_text}, in which {by} made room at {moment.time}"
            case Held.MARK:
                text = f"its process, which stood{self._mark_text(int(self._held_by[task]))} until {int(self._submit[task])}"
            case _:
                text = self._rule_text(held)
        return Cause(held, text, moment)

    def _moment(self, task: int) -> Moment:
        """Return what happened last before a task could run."""
        held, by = Held(int(self._held[task])), int(self._held_by[task])
        match held:
            case Held.EDGE | Held.MARK if by >= 0:
                return self._completion.of(by)[1]
            case Held.EXECUTOR | Held.CALENDAR if by >= 0:
                return Moment(int(self._end[by]), by)
            case Held.WINDOW if by >= 0:
                return Moment(int(self._complete[by]), by)
            case Held.NOT:
                return Moment(0)
            case Held.SUBMIT:
                return self._submission(task)
            case Held.START:
                return self._opening(task)
            case _:
                return self._before(task)

    def _edge_text(self, task: int, moment: Moment, by: str) -> str:
        if moment.task is None or moment.is_submitted:
            return f"what a process sends it{self._mark_text(int(self._held_by[task]))}, at {int(self._ready[task])}"
        reasons = [self._graph.reason(edge) for edge in self._graph.edges.into([task]) if edge.source == moment.task]
        ended, ready = int(self._end[moment.task]), int(self._ready[task])
        later = f", known to it at {ready}" if ready > ended else ""
        return f"{by}, which ended at {ended}{later}" + (f": {reasons[0]}" if reasons else "")

    def _rule_text(self, held: Held) -> str:
        rules = self._plan.rules
        match held:
            case Held.RELEASE:
                timing = {Release.BATCHED: f"batched({rules.release_n})", Release.RATE: "rate_limit"}.get(rules.release, "timing")
                return f"timing: {timing} had not released it"
            case Held.START:
                n = rules.start_after
                wanted = "all tasks were" if n is None else f"{counted(n, 'task')} {'was' if n == 1 else 'were'}"
                return f"the start policy: nothing runs before {wanted} submitted"
            case Held.SUBMIT:
                return f"submission: each task takes {counted(rules.submit_cycles, 'cycle')} to submit, and others came before it"
            case Held.DISPATCH:
                return (f"its AICPU, which takes {counted(rules.dispatch_cycles, 'cycle')} to dispatch a task and {rules.retire_cycles} to "
                        "retire one")
            case Held.CALENDAR:
                return "the calendar, which has it start then"
            case Held.WINDOW:
                return f"the {rules.window_text}"
            case _:
                return "its executor"

    def _mark_text(self, node: int) -> str:
        if self._columns.node_kind[node] == NodeKind.TASK:
            return ""
        at = int(np.searchsorted(self._columns.mark_node, node))
        item = self._items.get(int(self._columns.mark_site[at])) if at < len(self._columns.mark_node) and \
            self._columns.mark_node[at] == node else None
        return "" if item is None else f" at {item.span.short}"

    @cached_property
    def _items(self) -> dict[int, Send | Receive | Consume | RecordEvent | AwaitEvent]:
        return {item.site: item for item in items_of(self._plan) if isinstance(item, Send | Receive | Consume | RecordEvent | AwaitEvent)}

    # ---- the chain ----

    def chain(self, task: int) -> Chain:
        """Return the causes of a task, from the beginning to its completion, without gaps."""
        steps = self._retirement(task, int(self._complete[task]))
        seen: set[int] = set()
        at: int | None = task
        while at is not None and at not in seen:
            seen.add(at)
            kind = Held(int(self._held[at])).name.lower()
            steps.append(Step(int(self._start[at]), int(self._end[at]), "task", f"{at} {self._names[at]}", at, kind))
            at = self._step_back(steps, at, kind)
        steps.reverse()
        return Chain(tuple(together(steps)))

    def _step_back(self, steps: list[Step], task: int, kind: str) -> int | None:
        """Add what stands between the start of a task and the end of the one behind it; return that one, None at the beginning."""
        until, moment, cycles = int(self._start[task]), self._moment(task), self._plan.rules.dispatch_cycles
        if cycles:
            steps.append(Step(until - cycles, until, "dispatch", f"the dispatch of {task}", None, "dispatch"))
            until -= cycles
        text = self.cause(task).text if moment.time < until else ""
        while True:
            if moment.time < until:
                steps.append(Step(moment.time, until, kind, text, None, kind))
            if moment.task is None or not moment.is_submitted:
                steps += [] if moment.task is None else self._retirement(moment.task, moment.time)
                return moment.task
            until, kind, text = moment.time, "submit", f"the submission of {moment.task} {self._names[moment.task]}"
            moment = self._submission(moment.task)

    def _retirement(self, task: int, until: int) -> list[Step]:
        """Return what stands between the end of a task and the moment at which others saw it."""
        ended = int(self._end[task])
        busy = until - self._plan.rules.retire_cycles
        text = f"the retirement of {task}" + f", its AICPU being busy until {busy}" * (busy > ended)
        return [Step(ended, until, "retire", text, None, "retire")] if until > ended else []

    def _before(self, task: int) -> Moment:
        """Return what happened last before a rule held a task back: the completion of what it waits for, or its submission."""
        submitted = int(self._submit[task])
        sources = [edge.source for edge in self._graph.edges.into([task])] if self._ready[task] > submitted else []
        if sources:
            source = max(sources, key=lambda source: int(self._complete[source]))
            return Moment(int(self._complete[source]), source)
        return Moment(submitted, task, is_submitted=True)

    def _opening(self, task: int) -> Moment:
        """Return the last submission before the start policy let a task run: what a completion made possible came later."""
        until = int(self._start[task]) - self._plan.rules.dispatch_cycles
        by_time = np.argsort(self._submit, kind="stable")
        for latest in map(int, by_time[:np.searchsorted(self._submit[by_time], until, side="right")][::-1]):
            first = self._submission(latest)
            while first.task is not None and first.is_submitted:
                first = self._submission(first.task)
            if first.task is None:
                return Moment(int(self._submit[latest]), latest, is_submitted=True)
        return Moment(0)

    def _submission(self, task: int) -> Moment:
        """Return what a stream had to wait for before it submitted a task."""
        time = int(self._submit[task])
        if time == 0:
            return Moment(0)
        held, by = Held(int(self._held[task])), int(self._held_by[task])
        if held is Held.WINDOW and by >= 0:
            return Moment(int(self._complete[by]), by)
        if held is Held.MARK and by >= 0:
            return self._completion.of(by)[1]
        mark = self._completion.blocking_mark_before(task)
        if mark is not None and self._completion.of(mark)[0] == time:
            return self._completion.of(mark)[1]
        return self._submitted_after(task, time)

    def _submitted_after(self, task: int, time: int) -> Moment:
        """Return the submission before that of a task, where its stream was busy with it, else the completion that made room for it."""
        before = int(self._completion.before_in_stream[self._columns.task_node[task]])
        while before >= 0 and self._columns.node_task[before] < 0:
            before = int(self._completion.before_in_stream[before])
        cycles = self._plan.rules.submit_cycles
        if cycles and before >= 0:
            earlier = int(self._columns.node_task[before])
            if int(self._submit[earlier]) + cycles == time:
                return Moment(int(self._submit[earlier]), earlier, is_submitted=True)
        mine = self._columns.task_stream[:task] == self._columns.task_stream[task]
        complete = np.flatnonzero(mine & (self._complete[:task] <= time))
        if self._plan.rules.window and len(complete):
            freed = int(complete[np.argmax(self._complete[complete])])
            return Moment(int(self._complete[freed]), freed)
        return Moment(0)
