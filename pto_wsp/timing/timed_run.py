"""Combine a recorded stream with its simulated times: figures, trace, graph and explanations, for runs and simulations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.errors import RecordLimitError
from pto_wsp.ir.execution_rules import WindowRule
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import RecordColumns
from pto_wsp.run.simulator import STALL_REASONS, WAITS_FOR_ROOM, LastWait, SimResult
from pto_wsp.source import here
from pto_wsp.timing.edges import Edges
from pto_wsp.timing.explain import Chain, Explainer
from pto_wsp.timing.figures import ControlStats, ExecutorStats, KernelStats, KernelTable, PoolStats, StallStats, WindowStats
from pto_wsp.timing.graph import CriticalPath, Regions, RunGraph, critical_path
from pto_wsp.timing.links import place_name
from pto_wsp.timing.marked_edges import Completion
from pto_wsp.timing.stats import Stats, channel_stats
from pto_wsp.timing.trace import Causes, Home, Trace
from pto_wsp.values import dataclass

_MOST_BEHIND = 1 << 17
_MOST_CHAINED = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """The input of all reports: the simulated plan, its recorded stream, the times. Wall times are in milliseconds."""

    plan: TaskPlan
    columns: RecordColumns
    sim: SimResult
    execute_time_ms: float
    compile_time_ms: float
    regions: Regions | None = None
    arch: Arch | None = None
    known_chain: list[Chain] = field(default_factory=list, repr=False)     # the chain of causes, once it was asked for

    @property
    def stats(self) -> Stats:
        """The figures."""
        sim, rules = self.sim, self.plan.rules
        total = sim.total_cycles
        columns = zip(sim.busy, sim.waiting, sim.late, sim.tasks_run, self._homes(), strict=True)
        executors = tuple(ExecutorStats(busy, waiting, total - busy - waiting - late, tasks, late, home.pool, home.name)
                          for busy, waiting, late, tasks, home in columns)
        bounds = rules.windows or (WindowRule(0, rules.window_unit),)
        windows = tuple(WindowStats(bound.size, use.stalls, use.stall_cycles, use.high_water, bound.unit)
                        for bound in bounds for use in (sim.windows[bound.unit],))
        stalls = tuple(StallStats(reason, count, cycles)
                       for reason, count, cycles in zip(STALL_REASONS, sim.stalls, sim.stall_cycles, strict=True) if reason and count)
        control = ControlStats(rules.submit_cycles, rules.dispatch_cycles, rules.retire_cycles, self._n_aicpus(), self._in_a_row())
        return Stats(sim.n_tasks, total, sim.critical_path, sim.work, executors, windows[0], self.execute_time_ms, self.compile_time_ms,
                     stalls, self._pools(), channel_stats(self.plan, self.columns, sim), sim.memory_cycles, control,
                     memory_bound=self._memory_bound(), n_cores=self._n_cores(), more_windows=windows[1:],
                     by_kernel=self.kernels, chain=self.chain if self._has_chain else None)

    @property
    def _has_chain(self) -> bool:
        return self.sim.tasks is not None and self.columns.first_node == 0 and 0 < self.sim.n_tasks <= _MOST_CHAINED

    def kernels(self, wall_ns: np.ndarray[Any, Any] | None = None) -> KernelTable:
        """Return the figures of each kernel, most cycles first. `wall_ns`: by task, how long it ran on this machine."""
        times, names = self.sim.tasks, [use.kernel.name for use in self.plan.kernels]
        if times is None or self.columns.first_node > 0:
            return KernelTable(())
        known = {name: at for at, name in enumerate(dict.fromkeys(names))}
        kernel = np.array([known[name] for name in names], np.int64)[self.columns.task_kernel]

        def total(column: np.ndarray[Any, Any]) -> list[int]:
            found = np.zeros(len(known), np.int64)
            np.add.at(found, kernel, column)
            return found.tolist()

        count = np.bincount(kernel, minlength=len(known))
        between = np.bincount(times.hops.task, times.hops.waits, len(kernel)).astype(np.int64)     # links of a route
        cycles, waiting = total(times.end - times.start - between), total(times.start - times.submit + between)
        wall = [None] * len(known) if wall_ns is None else total(wall_ns)
        rows = (KernelStats(name, int(count[at]), cycles[at], waiting[at], wall[at]) for name, at in known.items() if count[at])
        return KernelTable(tuple(sorted(rows, key=lambda row: -row.cycles)))

    def chain(self) -> Chain:
        """Return the chain of causes of the task that completed last.

        Raises: R115 when there are more tasks than a record keeps.
        """
        if not self.known_chain:
            self.known_chain.append(self.explainer.last_chain())
        return self.known_chain[0]

    def _n_aicpus(self) -> int:
        """Return the number of AICPUs; for a calendar by keys, the number its keys name (each AICPU has one executor in every pool)."""
        return self.plan.rules.n_workers or int(np.bincount(np.array(self.sim.pool, np.int64)).max(initial=1))

    def _n_cores(self) -> int:
        """Return the number of the machine's cores; 0 if it has as many as a schedule names, or no known number."""
        return 0 if self.arch is None or self.arch.neutral else self.arch.cores.total

    def _memory_bound(self) -> int:
        """Return the cycles that all bytes take through the shared memory; 0 if the arch does not bound it, or the record is incomplete."""
        rate, moved = self.plan.rules.bytes_per_cycle, self.columns.task_bytes
        if not rate or moved is None or len(moved) != self.sim.n_tasks:
            return 0
        return int(float(moved[self.columns.task_cost > 0].sum()) / rate)     # tasks of cost 0 move no bytes

    def _in_a_row(self) -> int:
        """Return the number of tasks of the busiest stream; 0 if unknown."""
        if self.plan.n_streams == 1:
            return self.sim.n_tasks
        streams = self.columns.task_stream
        return int(np.bincount(streams).max()) if len(streams) == self.sim.n_tasks > 0 else 0

    def _pools(self) -> tuple[PoolStats, ...]:
        """Return the executors and work of each pool: task costs if a trace is kept, otherwise busy cycles."""
        sim = self.sim
        pool = np.array(sim.pool, np.int64)
        if not len(pool):
            return ()
        size = np.bincount(pool)
        work = np.zeros(len(size), np.int64)
        if sim.tasks is None:
            np.add.at(work, pool, np.array(sim.busy, np.int64))
        else:
            hops, cost = sim.tasks.hops, self.columns.task_cost
            count = np.bincount(hops.task, minlength=len(cost))       # links of a route: each has an equal part of the cost
            np.add.at(work, pool[sim.tasks.executor], np.where(count > 0, 0, cost))
            np.add.at(work, pool[hops.executor], cost[hops.task] // count[hops.task])
        if len(size) == 1:
            work = np.array([sim.work])
        return tuple(PoolStats(k, int(size[k]), int(work[k])) for k in range(len(size)) if size[k])

    @property
    def trace(self) -> Trace:
        """The busy interval and executor of each task in simulated time.

        Raises: R115 when there are more tasks than a record keeps.
        """
        return self._trace_with(self._causes)

    @property
    def lanes(self) -> Trace:
        """The trace without what delayed each task, which takes longer to find than all else: enough to draw it.

        Raises: R115 when there are more tasks than a record keeps.
        """
        return self._trace_with(lambda: None)

    def _trace_with(self, causes: Callable[[], Causes | None]) -> Trace:
        sim, columns, times = self.sim, self.columns, self.sim.tasks
        if times is None:
            raise RecordLimitError(f"the run had {sim.n_tasks} tasks, more than a trace keeps", here(), help="use stats")
        return Trace(times.start, times.end, times.ready, times.executor, columns.task_kernel,
                     tuple(use.kernel.name for use in self.plan.kernels), RecordNames(self.plan, columns), len(sim.busy), sim.total_cycles,
                     self._homes(), None if self.arch is None else self.arch.clock_ghz, causes(), lambda: self.stats, times.hops)

    def _homes(self) -> tuple[Home, ...]:
        """Return the home of each executor. Executors are numbered pool by pool, and within a pool AICPU by AICPU."""
        homes = []
        for pool, run in itertools.groupby(self.sim.pool):
            size = len(list(run))
            each = max(1, size // self._n_aicpus())
            homes += [Home(pool, k // each, place_name(self.plan.rules, pool, k // each, k % each)) for k in range(size)]
        return tuple(homes)

    def _causes(self) -> Causes | None:
        """Return what delayed each task last. Causes behind joins and marks are left out if there are very many."""
        times, columns = self.sim.tasks, self.columns
        if times is None or columns.first_node > 0:
            return None
        task = np.full(self.sim.n_tasks, -1, np.int64)
        is_task = np.isin(times.held, (LastWait.EXECUTOR, LastWait.CALENDAR, *WAITS_FOR_ROOM)) & (times.held_by >= 0)
        task[is_task] = times.held_by[is_task]
        is_node = np.isin(times.held, (LastWait.EDGE, LastWait.MARK)) & (times.held_by >= 0)
        task[is_node] = columns.node_task[times.held_by[is_node]]
        unresolved = np.flatnonzero(is_node & (task < 0))
        if len(unresolved) <= _MOST_BEHIND:
            completion = Completion(columns, times.submit, times.complete)
            for at in unresolved.tolist():
                moment = completion.of(int(times.held_by[at]))[1]
                task[at] = -1 if moment.task is None or moment.is_submitted else moment.task
        words = [held.name.lower() for held in LastWait]
        return Causes(times.submit, [words[held] for held in times.held.tolist()], task)

    @property
    def graph(self) -> RunGraph:
        """The tasks and all edges between them, with reasons."""
        return graph_of(self.plan, self.columns, self.regions)

    @property
    def explainer(self) -> Explainer:
        """The explainer of the tasks.

        Raises: R115 when there are more tasks than a record keeps.
        """
        return Explainer(self.plan, self.columns, self.sim, self.graph, tuple(home.name for home in self._homes()))

    @property
    def critical_path(self) -> CriticalPath:
        """The longest chain of dependent tasks.

        Raises: R115 when there are more tasks than a record keeps.
        """
        if self.columns.first_node > 0:
            raise RecordLimitError(f"the run had {self.sim.n_tasks} tasks, more than a record keeps", here(), help="use stats")
        return critical_path(self.columns, self.graph, self.plan.rules.hop_cycles)


def graph_of(plan: TaskPlan, columns: RecordColumns, regions: Regions | None = None) -> RunGraph:
    """Return the task graph of a record. `regions`: those of the run, which name the elements of conflicts."""
    rules = plan.rules

    def distance(source: int, target: int) -> int:
        (row, column), (to_row, to_column) = (divmod(int(columns.task_worker[task]), rules.grid_columns) for task in (source, target))
        return abs(row - to_row) + abs(column - to_column)

    return RunGraph(RecordNames(plan, columns), Edges(columns), regions or Regions(plan, columns), distance if rules.grid_columns else None)
