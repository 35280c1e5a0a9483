"""Freeze a simulated run: the schedule whose calendar has every task where and in which order the simulation ran it."""

from __future__ import annotations

import numpy as np

from pto_wsp.errors import ProgramStateError
from pto_wsp.report.timed_run import TimedRun
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import TaskGraph
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here


def frozen(timed: TimedRun, schedule: Schedule) -> Schedule:
    """Return the schedule of a simulated run with a calendar for what it left to be decided while it runs.

    Edges, window, start, batches and rates stay; dispatch, streams, pools and the order of ready tasks give way to the calendar, which has
    each task start when it did.
    Raises: R103 for a run of more tasks than a trace keeps.
    """
    sim = timed.sim
    if sim.tasks is None:
        raise ProgramStateError(f"the run had {sim.n_tasks} tasks, more than a calendar is made for", here(),
                                help="freeze a run of a smaller problem")
    start, executor = sim.tasks.start, sim.tasks.executor
    order = np.lexsort((sim.tasks.end, start, executor))       # ends as well: a task of no cost before the one that starts when it ends
    in_order = executor[order]
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.searchsorted(in_order, in_order)
    table = tuple(zip(executor.tolist(), position.tolist(), strict=True))
    timing, graph = schedule.timing, schedule.task_graph
    if timing is not None and timing.kind == "interleaved":
        timing = None       # which of ready tasks goes first is in the calendar
    if graph is not None:
        graph = TaskGraph(deps=graph.deps, window=graph.window, start=graph.start, trace=graph.trace)
    return Schedule(name=schedule.name, timing=timing, task_graph=graph, calendar=Calendar(table=table, starts=tuple(start.tolist())))
