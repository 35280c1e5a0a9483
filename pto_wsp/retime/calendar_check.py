"""Whether a calendar fits the tasks of a stream: looked at before any kernel runs.

A calendar is legal where every executor can run its tasks in the order of their positions: no task stands before one that it waits for,
by an edge or by a chain of edges and places, and the window lets in what has to run next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.errors import CalendarError, InternalError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.rules import FullWindow
from pto_wsp.report.edges import Edge, Edges
from pto_wsp.report.graph import TaskGraph
from pto_wsp.report.regions import Regions
from pto_wsp.report.timed_run import graph_of
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.failures.errors import TaskNames
from pto_wsp.runtime.failures.simulation import SimulationEnded, ended_error
from pto_wsp.runtime.native.recorder import Recorder
from pto_wsp.runtime.native.simulator import SimulationStuck
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.groups import before_in_group
from pto_wsp.wording import counted

Array = np.ndarray[Any, Any]

_SHOWN = 8      # steps of a circle


def check_recorded(plan: TaskPlan, recorder: Recorder, bindings: Bindings) -> None:
    """Check the calendar of a plan against the stream that a run has recorded.

    Raises: S106, and R106 for a task that finds no room in a window that ends the run.
    """
    columns = recorder.columns()
    if columns.first_node > 0:
        raise CalendarError(f"the run has {columns.total_tasks} tasks, more than a record keeps", expected="a stream whose tasks are all "
                            "known before the first one runs", help="use dispatch or streams, which need no table")
    if check_places(plan, columns) and plan.rules.full_window is not FullWindow.ABORT:
        return
    try:
        recorder.simulate(plan.rules, keep_trace=False)     # quick, and it knows windows and marks
    except SimulationEnded as ended:
        raise ended_error(plan, recorder.runtime, recorder.raw_columns(), ended) from None
    except SimulationStuck:
        raise breach_of(plan, columns, Regions(plan, columns, recorder, bindings)) from None


def check_places(plan: TaskPlan, columns: RecordColumns) -> bool:
    """Check that each task has a place of its own. Tell whether all executors keep the order of submission, which breaks nothing.

    Raises: S106 for more or fewer tasks than the table has rows, and for two tasks in one place.
    """
    names = TaskNames(plan, columns)
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
    """Return the error for a calendar under which not all tasks can run: the edge that it breaks, with both tasks."""
    graph, edges = graph_of(plan, columns, regions), Edges(columns)
    worker, position = columns.task_worker, _position(columns)
    for table in edges.tables():
        broken = np.flatnonzero((worker[table.source] == worker[table.target]) & (position[table.source] > position[table.target]))
        if len(broken):
            source, target, bits, arg = (int(column[broken[0]]) for column in (table.source, table.target, table.bits, table.arg))
            names = TaskNames(plan, columns)
            return CalendarError(
                f"the calendar has task {target} `{names[target]}` before task {source} `{names[source]}`, which it waits for",
                names.span_of(target), expected=f"task {source} first", notes=(graph.describe(Edge(source, target, bits, arg)),),
                found=f"executor {worker[target]} runs it at position {position[target]}, and task {source} at {position[source]}")
    return _circle(plan, columns, edges, graph) or _held_up(plan)


def _before(columns: RecordColumns) -> Array:
    """Return the task before each one on its executor, -1 for the first."""
    return before_in_group(columns.task_worker, _position(columns))


def _position(columns: RecordColumns) -> Array:
    if columns.task_position is None:
        raise InternalError("a calendar without positions")
    return columns.task_position


def _circle(plan: TaskPlan, columns: RecordColumns, edges: Edges, graph: TaskGraph) -> CalendarError | None:
    """Return the error for tasks of several executors that wait for each other in a circle; None where there is none."""
    before = _before(columns)
    left = _never_run(columns, edges, before)
    if not len(left):
        return None
    waiting = frozenset(left.tolist())
    steps: list[tuple[int, Edge | None]] = []        # task, and the edge by which it waits for the next one; None: its place
    seen: dict[int, int] = {}
    task = min(waiting)
    while task not in seen:
        seen[task] = len(steps)
        edge = next((edge for edge in edges.into([task]) if edge.source in waiting), None)
        steps.append((task, edge))
        task = int(before[task]) if edge is None else edge.source
    circle = steps[seen[task]:]
    names = TaskNames(plan, columns)
    broken = next(edge for _, edge in circle if edge is not None)
    notes = tuple(graph.describe(edge) if edge is not None else
                  f"{at} {names[at]} stands behind {int(before[at])} {names[int(before[at])]} on executor {columns.task_worker[at]}"
                  for at, edge in circle[:_SHOWN])
    return CalendarError(f"under the calendar task {broken.target} `{names[broken.target]}` waits for task {broken.source} "
                         f"`{names[broken.source]}`, which can only run after it",
                         names.span_of(broken.target), expected="places that leave every task behind those that it waits for",
                         found=f"a circle of {len(circle)} tasks", notes=notes)


def _never_run(columns: RecordColumns, edges: Edges, before: Array) -> Array:
    """Return the tasks that edges and places alone keep from running for ever."""
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


def _held_up(plan: TaskPlan) -> CalendarError:
    """Return the error for a calendar that the stream cannot keep up with: what has to run next is not submitted."""
    rules = plan.rules
    return CalendarError("under the calendar no task can run: those that are next are not submitted before others have run",
                         expected="places close to the order of submission, or a wider window",
                         found=f"a {rules.window_text}" if rules.window else "streams that wait",
                         help="widen the window: task_graph(window=TaskWindow(...))")
