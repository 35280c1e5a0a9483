"""`Simulation`: the tasks of a run in simulated time under a schedule and on an arch of one's choice."""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.arch.model import Arch
from pto_wsp.report.explain import Explanation
from pto_wsp.report.graph import TaskGraph
from pto_wsp.report.path import CriticalPath
from pto_wsp.report.stats import Stats
from pto_wsp.report.tasks import TaskLike
from pto_wsp.report.timed_run import TimedRun
from pto_wsp.report.trace import Trace
from pto_wsp.retime.freeze import frozen
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What `Program.simulate` returns. It stays as it is when the program runs again."""

    schedule: Schedule
    arch: Arch
    overheads: bool
    timed: TimedRun
    again: Callable[[object, object, object], Simulation]      # the run's tasks under a schedule, on an arch, with or without overheads

    @property
    def total_cycles(self) -> int:
        """The makespan."""
        return self.timed.sim.total_cycles

    @property
    def stats(self) -> Stats:
        """The figures, as `Program.stats` has them; wall times are those of the run."""
        return self.timed.stats

    @property
    def trace(self) -> Trace:
        """When each task is busy, and where."""
        return self.timed.trace

    @property
    def graph(self) -> TaskGraph:
        """The tasks and every edge between them under the schedule."""
        return self.timed.graph

    @property
    def critical_path(self) -> CriticalPath:
        """The longest chain of tasks that wait for one another."""
        return self.timed.critical_path

    def explain(self, task: TaskLike | None = None) -> Explanation:
        """Return why a task runs when it does: by its number, its name, or (kernel, indices).

        None: the task that completed last, whose chain() is what the makespan is made of.

        Raises: T205 for what names no task.
        """
        return self.timed.explainer.explain(task)

    def simulate(self, schedule: object = None, arch: object = None, overheads: bool | None = None) -> Simulation:
        """Return the same tasks in simulated time under another schedule, on another arch; None: as in this simulation.

        Raises: as `Program.simulate`; R103 once the program runs again: the tasks are those of its last run.
        """
        return self.again(self.schedule if schedule is None else schedule, self.arch if arch is None else arch,
                          self.overheads if overheads is None else overheads)

    def freeze(self) -> Schedule:
        """Return this simulation's schedule with its decisions as a calendar: each task's executor, position and start.

        Raises: R103 for a run of more tasks than a trace keeps.
        """
        return frozen(self.timed, self.schedule)

    def __repr__(self) -> str:
        return f"Simulation({counted(self.total_cycles, 'cycle')} on {self.arch.name}, {self.schedule!r})"
