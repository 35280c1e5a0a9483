"""Figures of a run: tasks, wall time, and the simulated cycles with their bounds."""

from __future__ import annotations

from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """One executor in simulated time: cycles busy, cycles idle while a task of its own waited for others, tasks run."""

    busy: int
    waiting: int
    idle: int
    tasks: int


@dataclass(frozen=True, slots=True)
class WindowStats:
    """The task window: times and cycles for which the orchestrator waited for a slot, and the most slots ever in use."""

    size: int
    stalls: int
    stall_cycles: int
    high_water: int


@dataclass(frozen=True, slots=True)
class StallStats:
    """One reason for which processes stood still: how often, and for how many cycles, added up over processes."""

    reason: str
    count: int
    cycles: int


# by PTO_STALL_ in pto_abi.h; the first is a mark that says no reason
STALL_REASONS = ("", "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "DATA_READ_WAIT", "EVENT_WAIT")
_STALLED = {
    "CHANNEL_EMPTY_WAIT": "empty channels: processes mostly waited for tokens",
    "CHANNEL_FULL_WAIT": "full channels: processes mostly waited for tokens to be received",
    "DATA_READ_WAIT": "reads: the orchestrator mostly waited for data that it reads",
    "EVENT_WAIT": "events: processes mostly waited for them",
}


@dataclass(frozen=True, slots=True)
class Stats:
    """What a run did. Cycles are of the arch model; the same number on every machine and with any number of threads.

    `stalls` has the reasons that occurred.
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

    @property
    def lower_bound(self) -> int:
        """No schedule on these executors takes less: the critical path, or the work shared evenly."""
        shares = -(-self.work // max(1, len(self.executors)))
        return max(self.critical_path, shares)

    @property
    def gap(self) -> float:
        """How far total_cycles is above the lower bound: 0.0 is as good as it gets."""
        return self.total_cycles / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def dominated_by(self) -> str:
        """What the makespan mostly is, in words."""
        if self.total_cycles == 0:
            return "nothing: there are no tasks"
        busiest = max(executor.busy for executor in self.executors)
        if self.critical_path >= self.total_cycles:
            return "the critical path: one chain of dependent tasks takes all the time"
        if busiest >= 0.95 * self.total_cycles:
            if len(self.executors) == 1:
                return "work on the one executor: more executors would help"
            spread = busiest / max(1.0, self.work / len(self.executors))
            return "work, spread evenly: only more executors would help" if spread < 1.05 else \
                f"imbalance: the busiest executor has {spread:.2f} times the average work"
        if self.window.stall_cycles > 0.5 * self.total_cycles:
            return "the window: the orchestrator mostly waited for a slot"
        longest = max(self.stalls, key=lambda stall: stall.cycles, default=None)
        if longest is not None and longest.cycles > 0.5 * self.total_cycles:
            return _STALLED[longest.reason]
        return "waiting: executors were idle while their tasks waited for others"
