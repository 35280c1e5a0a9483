"""The wall-clock trace of a native run: when each task began and ended on this machine, and on which thread."""

from __future__ import annotations

import numpy as np

from pto_wsp.plan.model import TaskPlan
from pto_wsp.report.trace import Home, Trace
from pto_wsp.runtime.failures.errors import TaskNames
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.wall import WallTimes
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@dataclass(frozen=True, slots=True, eq=False)
class WallTrace(Trace):
    """A Trace of wall time: start and end in ns since the first task began, threads in place of executors.

    `timeline` and `to_perfetto` take it. A task counts as ready when it begins: nobody looks at the clock before. `recording_ns`: what
    two looks at the clock and a write took a task, timed at the begin of the same run.
    """

    recording_ns: float = 0.0

    @property
    def unit(self) -> str:
        """What times are in."""
        return "ns"

    @property
    def place(self) -> str:
        """What tasks run on."""
        return "thread"

    def about(self) -> dict[str, object]:
        """Return what the file for Perfetto says of the whole trace."""
        return {"clock": "monotonic", "total_ns": self.total_ns, "recording_ns": self.recording_ns, "recording_share": self.recording_share}

    @property
    def total_ns(self) -> int:
        """From the begin of the first task to the end of the last."""
        return self.total_cycles

    @property
    def busy_ns(self) -> tuple[int, ...]:
        """By thread: how long tasks ran on it."""
        return tuple(int((self.end - self.start)[self.executor == thread].sum()) for thread in range(self.n_executors))

    @property
    def tasks_run(self) -> tuple[int, ...]:
        """By thread: how many tasks ran on it."""
        return tuple(np.bincount(self.executor, minlength=self.n_executors).tolist())

    @property
    def recording_share(self) -> float:
        """The part of the run that the thread with the most tasks took to record them."""
        return min(1.0, self.recording_ns * max(self.tasks_run, default=0) / self.total_ns) if self.total_ns else 0.0

    def __str__(self) -> str:
        tasks = self.tasks_run
        used = sum(count > 0 for count in tasks)
        lines = [f"{counted(len(self), 'task')} on {used} of {counted(len(tasks), 'thread')} "
                 f"in {_time(self.total_ns)}", f"{'thread':<10}{'busy':>18}{'tasks':>12}"]
        lines += [f"{thread:>4}{_time(busy):>18}{busy / max(1, self.total_ns):>6.0%}{count:>12}"
                  for thread, (busy, count) in enumerate(zip(self.busy_ns, tasks, strict=True)) if count or len(tasks) <= _MOST_IDLE]
        if len(lines) < len(tasks) + 2:
            lines.append(f"… and {len(tasks) + 2 - len(lines)} idle threads")
        return "\n".join([*lines, f"recording took about {self.recording_ns:.0f} ns a task, {self.recording_share:.1%} of the run"])


_MOST_IDLE = 8      # threads: of more, idle ones are only counted


def _time(ns: int) -> str:
    """Return a time in the unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:,.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns} ns"


def wall_trace_of(plan: TaskPlan, columns: RecordColumns, times: WallTimes, threads: int) -> WallTrace:
    """Return the trace of a run all of whose tasks have run, on some of so many threads."""
    origin = int(times.start.min()) if len(times.start) else 0
    start, end = times.start - origin, times.end - origin
    return WallTrace(start, end, start, times.thread.astype(np.int64), columns.task_kernel, tuple(use.kernel.name for use in plan.kernels),
                     TaskNames(plan, columns), threads, int(end.max()) if len(end) else 0, (Home(0, 0),) * threads, 1.0,
                     recording_ns=times.row_ns)
