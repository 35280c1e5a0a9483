"""Figures of a run: tasks, wall time, and the simulated cycles with their bounds and with what they went to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from pto_wsp.plan.rules import WindowUnit
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """One executor in simulated time, in cycles; busy, waiting, late and idle are all of the makespan.

    `waiting`: idle while a task of its own waited for others. `late`: idle while a task that it may not take was ready elsewhere in its
    pool, or its AICPU was busy with other tasks.
    """

    busy: int
    waiting: int
    idle: int
    tasks: int
    late: int = 0
    pool: int = 0


@dataclass(frozen=True, slots=True)
class PoolStats:
    """The executors of one kind: how many, and the cycles of all tasks that run on them, without what memory slows them down by."""

    pool: int
    executors: int
    work: int


@dataclass(frozen=True, slots=True)
class WindowStats:
    """The task window, in its unit: times and cycles for which streams waited for room, and the most that one ever took.

    With a window that is only counted (BENCHMARK): times that a task found no room.
    """

    size: int
    stalls: int
    stall_cycles: int
    high_water: int
    unit: WindowUnit = WindowUnit.TASKS


@dataclass(frozen=True, slots=True)
class StallStats:
    """One reason for which processes stood still: how often, and for how many cycles, added up over processes."""

    reason: str
    count: int
    cycles: int


@dataclass(frozen=True, slots=True)
class ChannelStats:
    """A channel: its slots, how many tokens went through it, and the most that were in it at a time."""

    name: str
    depth: int
    tokens: int
    high_water: int


@dataclass(frozen=True, slots=True)
class ControlStats:
    """What a task costs the control processors in simulated time, in cycles, and how many there are.

    `in_a_row`: the tasks that one of them submits, of the stream that has most.
    """

    submit: int = 0
    dispatch: int = 0
    retire: int = 0
    aicpus: int = 1
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class ResourceStats:
    """A bounded resource, by the name of its stall: its size ("" where nothing bounds it), the most in use, stalls and their cycles."""

    name: str
    size: str
    high_water: str
    stalls: int
    cycles: int


# by PTO_STALL_ in pto_abi.h; the first is a mark that says no reason
STALL_REASONS = ("", "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "DATA_READ_WAIT", "EVENT_WAIT")
_STALLED = {
    "CHANNEL_EMPTY_WAIT": "empty channels: processes mostly waited for tokens",
    "CHANNEL_FULL_WAIT": "full channels: processes mostly waited for tokens to be received",
    "DATA_READ_WAIT": "reads: the orchestrator mostly waited for data that it reads",
    "EVENT_WAIT": "events: processes mostly waited for them",
}
# by what held the chain of causes: a Held, or a kind of step that is none of a task
_HELD = {
    "edge": "latency: what tasks wait for mostly took its time to reach them",
    "executor": "lateness: tasks were ready, and their executors mostly took no others",
    "window": "the window: the orchestrator mostly waited for a slot",
    "mark": "marks: processes mostly waited for others",
    "release": "timing: tasks were mostly held until it released them",
    "start": "the start policy: tasks were mostly held until it let them run",
    "submit": "submission: the orchestrator needed the time to submit tasks",
    "dispatch": "dispatch: AICPUs needed most of the time to dispatch and retire tasks",
    "retire": "dispatch: AICPUs needed most of the time to dispatch and retire tasks",
    "calendar": "the calendar: tasks were mostly held until it came to them",
    "not": "nothing that is known: tasks started as soon as they were submitted",
}
_BUSY = 0.95           # of the makespan: an executor that is busy for so long has no time left
_MUCH_MEMORY = 0.25


@dataclass(frozen=True, slots=True)
class Stats:
    """What a run did. Cycles are of the arch model; the same number on every machine and with any number of threads.

    `stalls` has the reasons that occurred. `memory_cycles`: that tasks took longer because all of them together asked for more than the
    shared memory gives. `memory_bound`: those that it needs for the bytes of all tasks; 0 where the arch does not bound them.
    `intermediate_bytes`: the most memory that tensors made in bodies took natively at a time; the window bounds it.
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
    causes: Callable[[], Mapping[str, int]] | None = field(default=None, compare=False, repr=False)    # cycles of the chain by kind

    @property
    def lower_bound(self) -> int:
        """No schedule on these executors takes less: the critical path, the work of a pool shared evenly by its executors, the bytes of all
        tasks through the memory that they share, or what the control processors need to submit, or to dispatch and retire all tasks."""
        pools = self.pools or (PoolStats(0, max(1, len(self.executors)), self.work),)
        control = self.control
        served = (control.dispatch + control.retire) * self.task_count
        handed_out = max(control.submit * max(0, control.in_a_row - 1), -(-served // control.aicpus))
        return max(self.critical_path, handed_out, self.memory_bound, *(-(-pool.work // pool.executors) for pool in pools))

    @property
    def gap(self) -> float:
        """How far total_cycles is above the lower bound: 0.0 is as good as it gets."""
        return self.total_cycles / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def dominated_by(self) -> str:
        """What the makespan mostly is, in words: the kind with the most cycles of the chain of causes behind the task that completed last,
        as explain().chain() has it. Of a run without one, or of more than 65536 tasks, what the figures say."""
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
        """`of_chain`: it is known that no control processor holds the last task most of the time."""
        if self.critical_path >= self.total_cycles or self._memory_share > _MUCH_MEMORY or self._busiest.busy >= _BUSY * self.total_cycles:
            return self._work()
        if self.window.stall_cycles > 0.5 * self.total_cycles:
            return _HELD["window"]
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
        """Why the time is that of tasks."""
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
        """Every bounded resource by the name of its stall, with what was used of it.

        One resource is bounded by the window, by its unit. Ready queues and lists of dependencies grow: they hold no more than the window
        lets in, so READY_QUEUE_FULL and DEPLIST_POOL_FULL cannot occur.
        """
        window = self.window
        found = [ResourceStats(name, unit.amount(window.size), f"{window.high_water}", window.stalls, window.stall_cycles)
                 if unit is window.unit and window.size else ResourceStats(name, "", "", 0, 0) for unit, name in _BOUNDED.items()]
        found += [ResourceStats(name, "", "", 0, 0) for name in ("DEPLIST_POOL_FULL", "READY_QUEUE_FULL")]
        told = {stall.reason: stall for stall in self.stalls}
        depths = ", ".join(f"{channel.name}: {channel.depth}" for channel in self.channels)
        used = ", ".join(f"{channel.name}: {channel.high_water}" for channel in self.channels)
        for reason in STALL_REASONS[1:]:
            stall = told.get(reason, StallStats(reason, 0, 0))
            if self.channels and reason in ("CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT"):
                found.append(ResourceStats(reason, depths, used, stall.count, stall.cycles))
            elif stall.count:
                found.append(ResourceStats(reason, "", "", stall.count, stall.cycles))
        return tuple(found)

    def __str__(self) -> str:
        return stats_text(self)


# what a window of each unit bounds
_BOUNDED = {WindowUnit.TASKS: "TASK_RING_FULL", WindowUnit.BYTES: "HEAP_ARENA_FULL", WindowUnit.ENTRIES: "TENSORMAP_POOL_FULL"}
_SHOWN = 16


def stats_text(stats: Stats) -> str:
    """Return the figures as people read them in a terminal."""
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
        lines.append(f"{'stall':<20}{'size':>18}{'most used':>18}{'stalls':>10}{'cycles':>12}")
        lines += [f"{r.name:<20}{r.size:>18}{r.high_water:>18}{r.stalls:>10}{r.cycles:>12}" for r in used]
    return "\n".join(lines)
