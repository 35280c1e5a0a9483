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
class Stats:
    """What a run did. Cycles are of the arch model; the same number on every machine and with any number of threads."""

    task_count: int
    total_cycles: int
    critical_path: int
    work: int
    executors: tuple[ExecutorStats, ...]
    window: WindowStats
    execute_time_ms: float
    compile_time_ms: float

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
        return "waiting: executors were idle while their tasks waited for others"
