"""Compute the figures of a run: tasks, wall time, simulated cycles with their lower bounds, and what the cycles were spent on.

Channel occupancy is in simulated time: a token is in a channel from the completion of its send's mark to that of its receive's mark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.ir.execution_rules import WindowUnit
from pto_wsp.ir.flow import Consume, Receive, Send, walk
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.record import RecordColumns, Stall
from pto_wsp.run.simulator import WAITS_FOR_ROOM, SimResult
from pto_wsp.timing.marked_edges import Completion
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """One executor in simulated time, in cycles; busy + waiting + late + idle is the makespan.

    `waiting`: idle while a task of its own waited for others. `late`: idle while a ready task of its pool was on another executor's list,
    or while its AICPU was busy with other tasks.
    """

    busy: int
    waiting: int
    idle: int
    tasks: int
    late: int = 0
    pool: int = 0


@dataclass(frozen=True, slots=True)
class PoolStats:
    """The executors of one pool: their number, and the cycles of all their tasks without contention for memory."""

    pool: int
    executors: int
    work: int


@dataclass(frozen=True, slots=True)
class WindowStats:
    """A window, in its unit: stalls of streams waiting for room, their cycles, and the largest occupancy of one stream.

    For a window that is only counted (BENCHMARK): the times that a task found no room.
    """

    size: int
    stalls: int
    stall_cycles: int
    high_water: int
    unit: WindowUnit = WindowUnit.TASKS


@dataclass(frozen=True, slots=True)
class StallStats:
    """One reason for stalls of processes: number and cycles, summed over processes."""

    reason: str
    count: int
    cycles: int


@dataclass(frozen=True, slots=True)
class ChannelStats:
    """A channel: its depth, the tokens sent through it, and its largest occupancy."""

    name: str
    depth: int
    tokens: int
    high_water: int


@dataclass(frozen=True, slots=True)
class ControlStats:
    """The cost of a task on the control processors in cycles, and their number.

    `in_a_row`: the number of tasks that the busiest stream submits.
    """

    submit: int = 0
    dispatch: int = 0
    retire: int = 0
    aicpus: int = 1
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class ResourceStats:
    """A bounded resource, by the name of its stall: size ("" if unbounded), largest use, stalls and their cycles."""

    name: str
    size: str
    high_water: str
    stalls: int
    cycles: int


# by PTO_STALL_ in pto_abi.h; 0 is a mark without a reason
STALL_REASONS = ("", "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "DATA_READ_WAIT", "EVENT_WAIT")
_STALLED = {
    "CHANNEL_EMPTY_WAIT": "empty channels: processes mostly waited for tokens",
    "CHANNEL_FULL_WAIT": "full channels: processes mostly waited for tokens to be received",
    "DATA_READ_WAIT": "reads: the orchestrator mostly waited for data that it reads",
    "EVENT_WAIT": "events: processes mostly waited for them",
}
# by what delayed the chain of causes: a Held, or a kind of step without a task
_HELD = {
    "edge": "latency: what tasks wait for mostly took its time to reach them",
    "executor": "lateness: tasks were ready, and their executors mostly took no others",
    "window": "the window: the orchestrator mostly waited for a slot",
    "bytes": "the window of bytes: the orchestrator mostly waited for memory of intermediates",
    "entries": "the window of entries: the orchestrator mostly waited for arguments of tasks to retire",
    "edges": "the window of edges: the orchestrator mostly waited for dependencies to be done with",
    "ready": "the window of ready tasks: the orchestrator mostly waited for executors to take some",
    "mark": "marks: processes mostly waited for others",
    "release": "timing: tasks were mostly held until it released them",
    "start": "the start policy: tasks were mostly held until it let them run",
    "submit": "submission: the orchestrator needed the time to submit tasks",
    "dispatch": "dispatch: AICPUs needed most of the time to dispatch and retire tasks",
    "retire": "dispatch: AICPUs needed most of the time to dispatch and retire tasks",
    "calendar": "the calendar: tasks were mostly held until it came to them",
    "not": "nothing that is known: tasks started as soon as they were submitted",
}
_HELD_BY = {unit: held.name.lower() for held, unit in WAITS_FOR_ROOM.items()}
_BUSY = 0.95           # of the makespan: an executor busy for so long has no slack
_MUCH_MEMORY = 0.25


@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, repr=False)
class Stats(Displayed):
    """The figures of a run. Cycles are of the arch model: equal on every machine and for any number of threads.

    `window`: the first of the windows. `stalls`: the reasons that occurred. `memory_cycles`: the cycles that tasks lost because their
    total demand exceeded the bandwidth of the shared memory. `memory_bound`: the cycles in which the shared memory moves the bytes of all
    tasks; 0 if the arch does not bound it.
    `intermediate_bytes`: the peak native memory of tensors allocated in bodies, which the window bounds. `n_cores`: the cores of the
    arch; 0 if it has as many as a schedule names.
    """

    task_count: int
    total_cycles: int
    critical_path: int
    work: int
    executors: tuple[ExecutorStats, ...]
    window: WindowStats
    execute_time_ms: float
    compile_time_ms: float
    stalls: tuple[StallStats, ...] = ()
    pools: tuple[PoolStats, ...] = ()
    channels: tuple[ChannelStats, ...] = ()
    memory_cycles: int = 0
    control: ControlStats = ControlStats()
    intermediate_bytes: int = 0
    memory_bound: int = 0
    n_cores: int = 0
    more_windows: tuple[WindowStats, ...] = ()
    causes: Callable[[], Mapping[str, int]] | None = field(default=None, compare=False, repr=False)    # cycles of the chain, by kind

    def __call__(self) -> Stats:
        """Return the figures themselves, so that `program.stats()` is `program.stats`."""
        return self

    def columns(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the executors as columns, in cycles: `pandas.DataFrame(stats.columns())`.

        `executor`, `pool`, `busy`, `waiting`, `late`, `idle`, `tasks`: one element an executor.
        """
        fields = ("pool", "busy", "waiting", "late", "idle", "tasks")
        of = {name: np.array([getattr(executor, name) for executor in self.executors], np.int64) for name in fields}
        return {"executor": np.arange(len(self.executors))} | of

    @property
    def windows(self) -> tuple[WindowStats, ...]:
        """All windows, by unit."""
        return (self.window, *self.more_windows)

    @property
    def lower_bound(self) -> int:
        """The makespan in cycles that no schedule on these executors can beat.

        The maximum of: the critical path; each pool's work divided by its executors; the bytes of all tasks through the shared memory; the
        control processors' time to submit, or to dispatch and retire, all tasks.
        """
        pools = self.pools or (PoolStats(0, max(1, len(self.executors)), self.work),)
        control = self.control
        served = (control.dispatch + control.retire) * self.task_count
        handed_out = max(control.submit * max(0, control.in_a_row - 1), -(-served // control.aicpus))
        return max(self.critical_path, handed_out, self.memory_bound, *(-(-pool.work // pool.executors) for pool in pools))

    @property
    def gap(self) -> float:
        """How far total_cycles is above the lower bound, as a fraction; 0.0 is optimal."""
        return self.total_cycles / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def dominated_by(self) -> str:
        """What most of the makespan is spent on, in words.

        The kind with the most cycles in the chain of causes of the task that completed last, as in explain().chain(). Without a chain, or
        for more than 65536 tasks, the figures decide.
        """
        if self.total_cycles == 0:
            return "nothing: there are no tasks"
        shares = self.causes() if self.causes is not None else {}
        held = max(shares, key=lambda kind: shares[kind], default=None)
        if held is None or held == "task":
            return self._by_figures(of_chain=held is not None)
        if held == "mark":
            longest = self._longest_stall
            return _HELD[held] if longest is None else _STALLED[longest.reason]
        return _HELD[held]

    def _by_figures(self, *, of_chain: bool) -> str:
        """Return what dominates by the figures. `of_chain`: the chain shows that the control processors do not dominate."""
        if self.critical_path >= self.total_cycles or self._memory_share > _MUCH_MEMORY or self._busiest.busy >= _BUSY * self.total_cycles:
            return self._work()
        fullest = max(self.windows, key=lambda window: window.stall_cycles)
        if fullest.stall_cycles > 0.5 * self.total_cycles:
            return _HELD[_HELD_BY[fullest.unit]]
        longest = self._longest_stall
        if longest is not None and longest.cycles > 0.5 * self.total_cycles:
            return _STALLED[longest.reason]
        control, n_tasks = self.control, self.task_count
        if not of_chain and control.submit * n_tasks > 0.9 * self.total_cycles:
            return _HELD["submit"]
        if not of_chain and (control.dispatch + control.retire) * n_tasks > 0.5 * self.total_cycles * control.aicpus:
            return _HELD["dispatch"]
        return self._work()

    def _work(self) -> str:
        """Return why tasks themselves dominate."""
        if self.critical_path >= self.total_cycles:
            return "the critical path: one chain of dependent tasks takes all the time"
        if self._memory_share > _MUCH_MEMORY:
            return f"memory: tasks took {self._memory_share:.0%} longer because all cores share it"
        if self._busiest.busy < _BUSY * self.total_cycles:
            late, waiting, idle = (sum(column) for column in zip(*((e.late, e.waiting, e.idle) for e in self.executors), strict=True))
            if late > max(waiting, idle):
                return "lateness: tasks were ready, and those executors idle that may not take them"
            if waiting:
                return "waiting: executors were idle while their tasks waited for others"
            if self.critical_path > 0.5 * self.total_cycles:
                return f"the critical path: one chain of dependent tasks takes {self.critical_path / self.total_cycles:.0%} of the time"
        if len(self.executors) == 1:
            return "work on the one executor: more executors would help"
        pool = [executor for executor in self.executors if executor.pool == self._busiest.pool]
        which = f" of pool {self._busiest.pool}" * (len(pool) < len(self.executors))
        spread = self._busiest.busy * len(pool) / max(1, sum(executor.busy for executor in pool))
        if len(pool) == 1:
            return f"work on the one executor{which}: more of them would help"
        return f"work, spread evenly: only more executors{which} would help" if spread < 1.05 else \
            f"imbalance: the busiest executor{which} has {spread:.2f} times the average work"

    @property
    def cores_used(self) -> int:
        """The number of executors that ran a task."""
        return sum(executor.tasks > 0 for executor in self.executors)

    @property
    def _busiest(self) -> ExecutorStats:
        return max(self.executors, key=lambda executor: executor.busy)

    @property
    def _memory_share(self) -> float:
        return self.memory_cycles / max(1, self.work)

    @property
    def _longest_stall(self) -> StallStats | None:
        return max(self.stalls, key=lambda stall: stall.cycles, default=None)

    @property
    def resources(self) -> tuple[ResourceStats, ...]:
        """Every bounded resource by the name of its stall, with its use: a window bounds the resource of its unit."""
        by_unit = {window.unit: window for window in self.windows if window.size}
        resources = [ResourceStats(name, "", "", 0, 0) if (window := by_unit.get(unit)) is None else
                     ResourceStats(name, unit.amount(window.size), f"{window.high_water}", window.stalls, window.stall_cycles)
                     for unit, name in _BOUNDED.items()]
        by_reason = {stall.reason: stall for stall in self.stalls}
        depths = ", ".join(f"{channel.name}: {channel.depth}" for channel in self.channels)
        used = ", ".join(f"{channel.name}: {channel.high_water}" for channel in self.channels)
        for reason in STALL_REASONS[1:]:
            stall = by_reason.get(reason, StallStats(reason, 0, 0))
            if self.channels and reason in ("CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT"):
                resources.append(ResourceStats(reason, depths, used, stall.count, stall.cycles))
            elif stall.count:
                resources.append(ResourceStats(reason, "", "", stall.count, stall.cycles))
        return tuple(resources)

    def __str__(self) -> str:
        return stats_text(self)

    __repr__ = __str__


# the resource that a window of each unit bounds
_BOUNDED = {WindowUnit.TASKS: "TASK_RING_FULL", WindowUnit.BYTES: "HEAP_ARENA_FULL", WindowUnit.ENTRIES: "TENSORMAP_POOL_FULL",
            WindowUnit.EDGES: "DEPLIST_POOL_FULL", WindowUnit.READY: "READY_QUEUE_FULL"}
_SHOWN = 16


def stats_text(stats: Stats) -> str:
    """Return the figures as text for a terminal."""
    n, total = len(stats.executors), max(1, stats.total_cycles)
    pools = stats.pools or (PoolStats(0, n, stats.work),)
    shares = [f"work {pool.work} on {counted(pool.executors, 'executor')}" + f" of pool {pool.pool}" * (len(pools) > 1)
              for pool in pools]
    shares += [f"memory {stats.memory_bound}"] * bool(stats.memory_cycles)
    lines = [f"{counted(stats.task_count, 'task')} in {counted(stats.total_cycles, 'cycle')}; run {stats.execute_time_ms:.1f} ms, "
             f"compile {stats.compile_time_ms:.1f} ms",
             f"lower bound {counted(stats.lower_bound, 'cycle')}: critical path {stats.critical_path}, {', '.join(shares)}; "
             f"{stats.gap:.0%} above it",
             f"dominated by {stats.dominated_by}"]
    if stats.task_count and stats.cores_used < stats.n_cores:
        lines.insert(0, f"{stats.cores_used} of {stats.n_cores} cores used")
    if stats.memory_cycles:
        lines.append(f"memory: tasks took {counted(stats.memory_cycles, 'cycle')} longer because all cores share it")
    with_pools = len({executor.pool for executor in stats.executors}) > 1
    lines.append(f"{'executor' + ' (pool)' * with_pools:<16}{'busy':>12}{'waiting':>12}{'late':>12}{'idle':>12}{'tasks':>10}")
    shown = [k for k, one in enumerate(stats.executors) if one.tasks or n <= _SHOWN]
    for k in shown[:_SHOWN]:
        one = stats.executors[k]
        parts = "".join(f"{cycles:>6} {cycles / total:>5.0%}" for cycles in (one.busy, one.waiting, one.late, one.idle))
        lines.append(f"{k:>4}{f' ({one.pool})' * with_pools:<12}{parts}{one.tasks:>10}")
    rest = [stats.executors[k].busy for k in shown[_SHOWN:]]
    if rest:
        lines.append(f"   … {len(rest)} more, busy {min(rest)} to {max(rest)}")
    if len(shown) < n:
        lines.append(f"   … {n - len(shown)} ran nothing")
    used = [resource for resource in stats.resources if resource.size or resource.stalls]
    if used:
        sizes, most = (max(18, 2 + max(map(len, texts))) for texts in zip(*((r.size, r.high_water) for r in used), strict=True))
        lines.append(f"{'stall':<20}{'size':>{sizes}}{'most used':>{most}}{'stalls':>10}{'cycles':>12}")
        lines += [f"{r.name:<20}{r.size:>{sizes}}{r.high_water:>{most}}{r.stalls:>10}{r.cycles:>12}" for r in used]
    return "\n".join(lines)


_MOST_MARKS = 1 << 17


def channel_stats(plan: TaskPlan, columns: RecordColumns, sim: SimResult) -> tuple[ChannelStats, ...]:
    """Return the channels of a stream with their tokens; empty for a stream with more marks than _MOST_MARKS."""
    if sim.tasks is None or columns.first_node > 0 or not plan.channels or len(columns.mark_node) > _MOST_MARKS:
        return ()
    ends = {item.site: (item.channel, isinstance(item, Send)) for item in walk(plan.body) if isinstance(item, Send | Receive | Consume)}
    completion = Completion(columns, sim.tasks.submit, sim.tasks.complete)
    changes: list[list[tuple[int, int, int]]] = [[] for _ in plan.channels]     # (time, node, 1 or -1)
    for node, site, stall in zip(columns.mark_node.tolist(), columns.mark_site.tolist(), columns.mark_stall.tolist(), strict=True):
        channel, is_sent = ends.get(site, (-1, False))
        if channel >= 0 and stall == (Stall.NONE if is_sent else Stall.CHANNEL_EMPTY):
            changes[channel].append((completion.of(node)[0], node, 1 if is_sent else -1))
    stats = []
    for declared, moves in zip(plan.channels, changes, strict=True):
        steps = np.array([step for _, _, step in sorted(moves)], np.int64)
        stats.append(ChannelStats(declared.name, declared.depth, int((steps > 0).sum()), max(0, int(np.cumsum(steps).max(initial=0)))))
    return tuple(stats)
