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
from pto_wsp.pickling import with_computed
from pto_wsp.run.record import RecordColumns, Stall
from pto_wsp.run.simulator import STALL_REASONS, SimResult
from pto_wsp.timing.explain import Chain
from pto_wsp.timing.figures import ChannelStats, ControlStats, ExecutorStats, KernelTable, PoolStats, ResourceStats, StallStats, WindowStats
from pto_wsp.timing.marked_edges import Completion
from pto_wsp.timing.verdict import RunVerdict, verdict_of
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, repr=False)
class Stats(Displayed):
    """The figures of a run. Cycles are of the arch model: equal on every machine and for any number of threads.

    `window`: the first of the windows. `stalls`: the reasons that occurred. `memory_cycles`: the cycles that tasks lost because their
    total demand exceeded the bandwidth of the shared memory. `memory_bound`: the cycles in which the shared memory moves the bytes of all
    tasks; 0 if the arch does not bound it.
    `intermediate_bytes`: the peak native memory of tensors allocated in bodies, which the window bounds. `n_cores`: the cores of the
    arch; 0 if it has as many as a schedule names. `advice`: the sentence of the advice on the run, if it was asked for.
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
    advice: str = field(default="", compare=False, repr=False)
    by_kernel: Callable[[], KernelTable] | None = field(default=None, compare=False, repr=False)
    chain: Callable[[], Chain] | None = field(default=None, compare=False, repr=False)     # that of the task that completed last

    def __reduce__(self) -> tuple[object, ...]:
        return with_computed(self, "by_kernel", "chain")

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
    def kernels(self) -> KernelTable:
        """The tasks of each kernel: number, cycles, waiting, wall time; none for a run of more tasks than a record keeps."""
        return KernelTable(()) if self.by_kernel is None else self.by_kernel()

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
        control = self.control
        served = (control.dispatch + control.retire) * self.task_count
        handed_out = max(control.submit * max(0, control.in_a_row - 1), -(-served // control.aicpus))
        return max(self.critical_path, handed_out, self.memory_bound, *(-(-pool.work // pool.executors) for pool in self.shared_pools))

    @property
    def gap(self) -> float:
        """How far total_cycles is above the lower bound, as a fraction; 0.0 is optimal."""
        return self.total_cycles / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def verdict(self) -> RunVerdict:
        """The bound of the run, as data: the figure that is the lower bound if the run reaches it, else the largest cause in the makespan.

        Without a chain, or for more than 65536 tasks, the figures decide. See docs/explaining.md.
        """
        return verdict_of(self, None if self.chain is None else self.chain())

    def causes(self) -> Mapping[str, int]:
        """Return the cycles of the makespan by cause, most first, as `explain().chain().causes`.

        Nothing for a run whose chain of causes is not looked for.
        """
        return {} if self.chain is None else self.chain().causes

    @property
    def dominated_by(self) -> str:
        """What bounds the run, in words: the text of `verdict`."""
        return self.verdict.text

    @property
    def shared_pools(self) -> tuple[PoolStats, ...]:
        """The pools; a single pool of all executors if the run has no pools."""
        return self.pools or (PoolStats(0, max(1, len(self.executors)), self.work),)

    @property
    def cores_used(self) -> int:
        """The number of executors that ran a task."""
        return sum(executor.tasks > 0 for executor in self.executors)

    @property
    def memory_share(self) -> float:
        """The cycles that tasks lost to other tasks in memory, as a fraction of the cycles that tasks take alone."""
        return self.memory_cycles / max(1, self.work)

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
    pools = stats.shared_pools
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
    shown = [k for k, one in enumerate(stats.executors) if one.tasks or (n <= _SHOWN and not one.name)]
    widest = max((15, *(len(stats.executors[k].name) for k in shown[:_SHOWN]))) + 1
    lines.append(f"{'executor' + ' (pool)' * with_pools:<{widest}}{'busy':>12}{'waiting':>12}{'late':>12}{'idle':>12}{'tasks':>10}")
    for k in shown[:_SHOWN]:
        one = stats.executors[k]
        parts = "".join(f"{cycles:>6} {cycles / total:>5.0%}" for cycles in (one.busy, one.waiting, one.late, one.idle))
        called = one.name or f"{k:>4}{f' ({one.pool})' * with_pools}"
        lines.append(f"{called:<{widest}}{parts}{one.tasks:>10}")
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


Array = np.ndarray[Any, Any]
_MOST_MARKS = 1 << 17


def channel_stats(plan: TaskPlan, columns: RecordColumns, sim: SimResult) -> tuple[ChannelStats, ...]:
    """Return the channels of a stream with their tokens; empty for a stream with more marks than _MOST_MARKS."""
    stats = []
    for declared, (_, levels) in zip(plan.channels, channel_levels(plan, columns, sim), strict=False):
        sent = int((np.diff(levels, prepend=0) > 0).sum())
        stats.append(ChannelStats(declared.name, declared.depth, sent, max(0, int(levels.max(initial=0)))))
    return tuple(stats)


def channel_levels(plan: TaskPlan, columns: RecordColumns, sim: SimResult) -> tuple[tuple[Array, Array], ...]:
    """Return the tokens in each channel: times of changes in cycles, and the number from then on; empty beyond _MOST_MARKS marks."""
    if sim.tasks is None or columns.first_node > 0 or not plan.channels or len(columns.mark_node) > _MOST_MARKS:
        return ()
    ends = {item.site: (item.channel, isinstance(item, Send)) for item in walk(plan.body) if isinstance(item, Send | Receive | Consume)}
    completion = Completion(columns, sim.tasks.submit, sim.tasks.complete)
    changes: list[list[tuple[int, int, int]]] = [[] for _ in plan.channels]     # (time, node, 1 or -1)
    for node, site, stall in zip(columns.mark_node.tolist(), columns.mark_site.tolist(), columns.mark_stall.tolist(), strict=True):
        channel, is_sent = ends.get(site, (-1, False))
        if channel >= 0 and stall == (Stall.NONE if is_sent else Stall.CHANNEL_EMPTY):
            changes[channel].append((completion.of(node)[0], node, 1 if is_sent else -1))
    levels = []
    for moves in changes:
        rows = np.array(sorted(moves), np.int64).reshape(-1, 3)
        levels.append((rows[:, 0], np.cumsum(rows[:, 2])))
    return tuple(levels)
