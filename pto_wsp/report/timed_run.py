"""A stream of tasks with its simulated times: figures, trace and graph, of a program's run and of a simulation alike."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from pto_wsp.errors import ProgramStateError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.report.channels import channel_stats
from pto_wsp.report.completion import Completion
from pto_wsp.report.edges import Edges
from pto_wsp.report.explain import Explainer
from pto_wsp.report.graph import TaskGraph
from pto_wsp.report.path import CriticalPath, critical_path
from pto_wsp.report.regions import Regions
from pto_wsp.report.stats import STALL_REASONS, ControlStats, ExecutorStats, PoolStats, StallStats, Stats, WindowStats
from pto_wsp.report.trace import Causes, Home, Trace
from pto_wsp.runtime.failures.errors import TaskNames
from pto_wsp.runtime.native.simulator import Held, SimResult
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.source import here
from pto_wsp.values import dataclass

_MOST_BEHIND = 1 << 17
_MOST_CHAINED = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """What the reports are made from: the plan that was simulated, its recorded stream, the times. Wall times are in milliseconds."""

    plan: TaskPlan
    columns: RecordColumns
    sim: SimResult
    execute_time_ms: float
    compile_time_ms: float
    regions: Regions | None = None
    clock_ghz: float | None = None

    @property
    def stats(self) -> Stats:
        """The figures."""
        sim, rules = self.sim, self.plan.rules
        total = sim.total_cycles
        columns = zip(sim.busy, sim.waiting, sim.late, sim.tasks_run, sim.pool, strict=True)
        executors = tuple(ExecutorStats(busy, waiting, total - busy - waiting - late, tasks, late, pool)
                          for busy, waiting, late, tasks, pool in columns)
        window = WindowStats(rules.window, sim.window_stalls, sim.window_stall_cycles, sim.window_high_water, rules.window_unit)
        stalls = tuple(StallStats(reason, count, cycles)
                       for reason, count, cycles in zip(STALL_REASONS, sim.stalls, sim.stall_cycles, strict=True) if reason and count)
        control = ControlStats(rules.submit_cycles, rules.dispatch_cycles, rules.retire_cycles, self._n_aicpus(), self._in_a_row())
        return Stats(sim.n_tasks, total, sim.critical_path, sim.work, executors, window, self.execute_time_ms, self.compile_time_ms, stalls,
                     self._pools(), channel_stats(self.plan, self.columns, sim), sim.memory_cycles, control,
                     memory_bound=self._memory_bound(), causes=self._cycles_by_cause if self._has_chain else None)

    @property
    def _has_chain(self) -> bool:
        return self.sim.tasks is not None and self.columns.first_node == 0 and 0 < self.sim.n_tasks <= _MOST_CHAINED

    def _cycles_by_cause(self) -> Mapping[str, int]:
        return self.explainer.explain(None).chain().cycles

    def _n_aicpus(self) -> int:
        """Return how many AICPUs there are: as many as a calendar by keys has named, whose executors have one each in every pool."""
        return self.plan.rules.n_workers or int(np.bincount(np.array(self.sim.pool, np.int64)).max(initial=1))

    def _memory_bound(self) -> int:
        """Return the cycles that all bytes take where the arch bounds them; 0 where it does not, or the record has lost tasks."""
        rate, moved = self.plan.rules.bytes_per_cycle, self.columns.task_bytes
        if not rate or moved is None or len(moved) != self.sim.n_tasks:
            return 0
        return int(float(moved[self.columns.task_cost > 0].sum()) / rate)     # what costs nothing asks for nothing

    def _in_a_row(self) -> int:
        """Return how many tasks the stream that has most submits; 0 where that is not known."""
        if self.plan.n_streams == 1:
            return self.sim.n_tasks
        streams = self.columns.task_stream
        return int(np.bincount(streams).max()) if len(streams) == self.sim.n_tasks > 0 else 0

    def _pools(self) -> tuple[PoolStats, ...]:
        """Return the executors of each pool and their work: the costs of tasks where a trace is kept, else how long they took."""
        sim = self.sim
        pool = np.array(sim.pool, np.int64)
        if not len(pool):
            return ()
        size = np.bincount(pool)
        work = np.zeros(len(size), np.int64)
        if sim.tasks is None:
            np.add.at(work, pool, np.array(sim.busy, np.int64))
        else:
            np.add.at(work, pool[sim.tasks.executor], self.columns.task_cost)
        if len(size) == 1:
            work = np.array([sim.work])
        return tuple(PoolStats(k, int(size[k]), int(work[k])) for k in range(len(size)) if size[k])

    @property
    def trace(self) -> Trace:
        """When each task was busy in simulated time, and where.

        Raises: R103 when there are more tasks than a record keeps.
        """
        sim, columns, times = self.sim, self.columns, self.sim.tasks
        if times is None:
            raise ProgramStateError(f"the run had {sim.n_tasks} tasks, more than a trace keeps", here(), help="use stats")
        return Trace(times.start, times.end, times.ready, times.executor, columns.task_kernel,
                     tuple(use.kernel.name for use in self.plan.kernels), TaskNames(self.plan, columns), len(sim.busy), sim.total_cycles,
                     self._homes(), self.clock_ghz, self._causes())

    def _homes(self) -> tuple[Home, ...]:
        """Return whose each executor is. They are counted pool by pool, in each pool AICPU by AICPU."""
        found = []
        for pool, run in itertools.groupby(self.sim.pool):
            size = len(list(run))
            each = max(1, size // self._n_aicpus())
            found += [Home(pool, k // each) for k in range(size)]
        return tuple(found)

    def _causes(self) -> Causes | None:
        """Return what delayed each task last. Behind joins and marks nobody looks where there are very many."""
        times, columns = self.sim.tasks, self.columns
        if times is None or columns.first_node > 0:
            return None
        task = np.full(self.sim.n_tasks, -1, np.int64)
        is_task = np.isin(times.held, (Held.EXECUTOR, Held.WINDOW, Held.CALENDAR)) & (times.held_by >= 0)
        task[is_task] = times.held_by[is_task]
        is_node = np.isin(times.held, (Held.EDGE, Held.MARK)) & (times.held_by >= 0)
        task[is_node] = columns.node_task[times.held_by[is_node]]
        behind = np.flatnonzero(is_node & (task < 0))
        if len(behind) <= _MOST_BEHIND:
            completion = Completion(columns, times.submit, times.complete)
            for at in behind.tolist():
                moment = completion.of(int(times.held_by[at]))[1]
                task[at] = -1 if moment.task is None or moment.is_submitted else moment.task
        words = [held.name.lower() for held in Held]
        return Causes(times.submit, [words[held] for held in times.held.tolist()], task)

    @property
    def graph(self) -> TaskGraph:
        """The tasks and every edge between them, with its reasons."""
        return graph_of(self.plan, self.columns, self.regions)

    @property
    def explainer(self) -> Explainer:
        """What explains the tasks.

        Raises: R103 when there are more tasks than a record keeps.
        """
        return Explainer(self.plan, self.columns, self.sim, self.graph)

    @property
    def critical_path(self) -> CriticalPath:
        """The longest chain of tasks that wait for one another.

        Raises: R103 when there are more tasks than a record keeps.
        """
        if self.columns.first_node > 0:
            raise ProgramStateError(f"the run had {self.sim.n_tasks} tasks, more than a record keeps", here(), help="use stats")
        return critical_path(self.columns, self.graph)


def graph_of(plan: TaskPlan, columns: RecordColumns, regions: Regions | None = None) -> TaskGraph:
    """Return the tasks of a record and every edge between them; `regions`: those of the run, to say on which elements."""
    return TaskGraph(TaskNames(plan, columns), Edges(columns), regions or Regions(plan, columns))
