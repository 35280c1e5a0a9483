"""Check that a calendar fits the tasks of a stream, before any kernel runs.

A calendar is legal if every executor can run its tasks in the order of their positions: no task precedes one that it waits for, directly or
through a chain of edges and positions, and the window admits the tasks that must run next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.errors import CalendarError, InternalError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import RecordNames, SimulationEnded, ended_error
from pto_wsp.run.record import RecordColumns, before_in_group
from pto_wsp.run.simulator import Recorder, SimulationStuck
from pto_wsp.timing.edges import Edge, Edges
from pto_wsp.timing.graph import Regions, RunGraph
from pto_wsp.timing.links import check_links
from pto_wsp.timing.timed_run import graph_of
from pto_wsp.wording import counted

Array = np.ndarray[Any, Any]

_SHOWN = 8      # steps of a cycle in a message


def check_recorded(plan: TaskPlan, recorder: Recorder, bindings: Bindings) -> None:
    """Check a plan's calendar, and the buffers of its links, against the recorded stream of a run.

    Raises: S106 for a calendar that does not fit; R106 for a task that does not fit an aborting window; W111 for copies that fill buffers
    in a circle.
    """
    if plan.rules.may_fill_links:
        try:
            check_links(plan, recorder)
        except SimulationEnded as ended:
            raise ended_error(plan, recorder.raw_columns(), ended) from None
        return
    columns = recorder.columns()
    if columns.first_node > 0:
        raise CalendarError(f"the run has {columns.total_tasks} tasks, more than a record keeps", expected="a stream whose tasks are all "
                            "known before the first one runs", help="use dispatch or streams, which need no table")
    if check_places(plan, columns) and not plan.rules.may_abort:
        return
    try:
        recorder.simulate(plan.rules, keep_trace=False)     # fast, and it covers windows and marks
    except SimulationEnded as ended:
        raise ended_error(plan, recorder.raw_columns(), ended) from None
    except SimulationStuck:
        raise breach_of(plan, columns, Regions(plan, columns, recorder, bindings)) from None


def check_places(plan: TaskPlan, columns: RecordColumns) -> bool:
    """Check that each task has a position of its own; return whether all executors keep submission order, which breaks nothing.

    Raises: S106 if the table has more or fewer rows than tasks, or two tasks in one position.
    """
    names = RecordNames(plan, columns)
    if plan.calendar and len(plan.calendar) != columns.n_tasks:
        raise CalendarError(f"the calendar has {counted(len(plan.calendar), 'row')}, and the run has {counted(columns.n_tasks, 'task')}",
                            expected="a row for each task, in submission order",
                            help="make it for these sizes: program.freeze() after a run of them")
    before, position = _before(columns), _position(columns)
    repeated = np.flatnonzero((before >= 0) & (position[before] == position))
    if len(repeated):
        first, second = int(before[repeated[0]]), int(repeated[0])
        raise CalendarError(f"task {first} `{names[first]}` and task {second} `{names[second]}` are in one place of the calendar",
                            names.span_of(second),
                            expected="a position of its own for each task of an executor",
                            found=f"executor {columns.task_worker[second]}, position {position[second]}")
    return not np.any(before > np.arange(columns.n_tasks))


def breach_of(plan: TaskPlan, columns: RecordColumns, regions: Regions | None) -> CalendarError:
    """Return the error for a calendar under which some tasks can never run: the broken edge, with both tasks."""
    graph, edges = graph_of(plan, columns, regions), Edges(columns)
    worker, position = columns.task_worker, _position(columns)
    for table in edges.tables():
        broken = np.flatnonzero((worker[table.source] == worker[table.target]) & (position[table.source] > position[table.target]))
        if len(broken):
            source, target, bits, arg = (int(column[broken[0]]) for column in (table.source, table.target, table.bits, table.arg))
            names = RecordNames(plan, columns)
            return CalendarError(
                f"the calendar has task {target} `{names[target]}` before task {source} `{names[source]}`, which it waits for",
                names.span_of(target), expected=f"task {source} first", notes=(graph.describe(Edge(source, target, bits, arg)),),
                found=f"executor {worker[target]} runs it at position {position[target]}, and task {source} at {position[source]}")
    return _circle(plan, columns, edges, graph) or _calendar_stall(plan)


def _before(columns: RecordColumns) -> Array:
    """Return the previous task of each task on its executor; -1 for the first."""
    return before_in_group(columns.task_worker, _position(columns))


def _position(columns: RecordColumns) -> Array:
    if columns.task_position is None:
        raise InternalError("a calendar without positions")
    return columns.task_position


def _circle(plan: TaskPlan, columns: RecordColumns, edges: Edges, graph: RunGraph) -> CalendarError | None:
    """Return the error for tasks of several executors that wait for each other in a cycle; None if there is no cycle."""
    before = _before(columns)
    left = _never_run(columns, edges, before)
    if not len(left):
        return None
    waiting = frozenset(left.tolist())
    steps: list[tuple[int, Edge | None]] = []        # (task, edge to the next step; None: its position)
    seen: dict[int, int] = {}
    task = min(waiting)
    while task not in seen:
        seen[task] = len(steps)
        edge = next((edge for edge in edges.into([task]) if edge.source in waiting), None)
        steps.append((task, edge))
        task = int(before[task]) if edge is None else edge.source
    circle = steps[seen[task]:]
    names = RecordNames(plan, columns)
    broken = next(edge for _, edge in circle if edge is not None)
    notes = tuple(graph.describe(edge) if edge is not None else
                  f"{at} {names[at]} stands behind {int(before[at])} {names[int(before[at])]} on executor {columns.task_worker[at]}"
                  for at, edge in circle[:_SHOWN])
    return CalendarError(f"under the calendar task {broken.target} `{names[broken.target]}` waits for task {broken.source} "
                         f"`{names[broken.source]}`, which can only run after it",
                         names.span_of(broken.target), expected="places that leave every task behind those that it waits for",
                         found=f"a circle of {len(circle)} tasks", notes=notes)


def _never_run(columns: RecordColumns, edges: Edges, before: Array) -> Array:
    """Return the tasks that edges and positions alone keep from ever running, by Kahn's algorithm."""
    n = columns.n_tasks
    sources, targets = [before[before >= 0]], [np.flatnonzero(before >= 0)]
    for table in edges.tables():
        sources.append(table.source)
        targets.append(table.target)
    source, target = np.concatenate(sources), np.concatenate(targets)
    by_source = np.argsort(source, kind="stable")
    begin = np.searchsorted(source[by_source], np.arange(n + 1)).tolist()
    after = target[by_source].tolist()
    pending = np.bincount(target, minlength=n)
    ready = np.flatnonzero(pending == 0).tolist()
    counts = pending.tolist()
    while ready:
        task = ready.pop()
        for follower in after[begin[task]:begin[task + 1]]:
            counts[follower] -= 1
            if counts[follower] == 0:
                ready.append(follower)
    return np.flatnonzero(np.array(counts) > 0)


def _calendar_stall(plan: TaskPlan) -> CalendarError:
    """Return the error for a calendar that needs a task before the stream can submit it."""
    rules = plan.rules
    return CalendarError("under the calendar no task can run: those that are next are not submitted before others have run",
                         expected="places close to the order of submission, or a wider window",
                         found=f"a {rules.window_text}" if rules.window else "streams that wait",
                         help="widen the window: task_graph(window=TaskWindow(...))")
