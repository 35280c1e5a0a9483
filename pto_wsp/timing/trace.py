"""Hold traces of a run, and write them as Chrome JSON for ui.perfetto.dev and chrome://tracing.

`Trace` has the simulated times in cycles, `WallTrace` the measured times of a native run in ns. In the JSON a process is an AICPU, a thread
an executor, a slice a task; an arrow leads from the task whose end another task waited for last. Counters show the tasks submitted but not
ended, and those ready but not running.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.errors import ArgumentKindError, CommandError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import RecordColumns, WallTimes
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import counted

Row: TypeAlias = "dict[str, object]"

_COUNTERS = 1 << 20        # process id of the counters, above all AICPUs


# -- Chrome JSON -------------------------------------------------------------------------------------------------------
def write_perfetto(trace: Trace, path: Path) -> Path:
    """Write a trace as Chrome JSON and return the path.

    Raises: C108 if the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            head = json.dumps(trace.about())
            file.write(f'{{"displayTimeUnit":"ns","otherData":{head},"traceEvents":[\n')
            for number, row in enumerate(perfetto_rows(trace)):
                file.write(",\n" * (number > 0) + json.dumps(row, separators=(",", ":"), ensure_ascii=False))
            file.write("\n]}\n")
    except OSError as problem:
        raise CommandError("the trace cannot be written there", here(), found=str(problem)) from None
    return path


def perfetto_rows(trace: Trace) -> Iterator[Row]:
    """Yield the events of a trace: process and thread names, tasks, arrows, counters."""
    on_arch = trace.place == "executor"
    us = 1.0 if not trace.clock_ghz else 1e-3 / trace.clock_ghz
    homes = [trace.home_of(executor) for executor in range(trace.n_executors)]
    for aicpu in sorted({home.aicpu for home in homes}):
        yield {"ph": "M", "name": "process_name", "pid": aicpu, "tid": 0, "args": {"name": f"AICPU {aicpu}" if on_arch else "host"}}
    several = len({home.pool for home in homes}) > 1
    for executor, home in enumerate(homes):
        name = f"{trace.place} {executor}" + f" (pool {home.pool})" * several
        yield {"ph": "M", "name": "thread_name", "pid": home.aicpu, "tid": executor, "args": {"name": name}}
    causes = trace.causes
    start, end, executors = trace.start.tolist(), trace.end.tolist(), trace.executor.tolist()
    for task in range(len(trace)):
        said: Row = {"task": task, trace.unit: end[task] - start[task]} | ({"ready": int(trace.ready[task])} if on_arch else {})
        if causes is not None:
            said |= {"submitted": int(causes.submit[task]), "delayed by": causes.held[task]}
        yield {"ph": "X", "name": trace.names[task], "cat": trace.kernels[int(trace.kernel[task])], "pid": homes[executors[task]].aicpu,
               "tid": executors[task], "ts": start[task] * us, "dur": (end[task] - start[task]) * us, "args": said}
    if causes is None:
        return
    for task in np.flatnonzero(causes.task >= 0).tolist():
        source = int(causes.task[task])
        last = max(start[source], end[source] - 1)      # inside the slice: viewers attach no arrow at its end
        arrow: Row = {"name": causes.held[task], "cat": "waits", "id": task}
        yield {"ph": "s", **arrow, "pid": homes[executors[source]].aicpu, "tid": executors[source], "ts": last * us}
        yield {"ph": "f", "bp": "e", **arrow, "pid": homes[executors[task]].aicpu, "tid": executors[task], "ts": start[task] * us}
    yield {"ph": "M", "name": "process_name", "pid": _COUNTERS, "tid": 0, "args": {"name": "tasks"}}
    yield from _counter("submitted, not ended", causes.submit, trace.end, us)
    yield from _counter("ready, not running", np.maximum(trace.ready, causes.submit), trace.start, us)


def _counter(name: str, begin: np.ndarray[Any, Any], end: np.ndarray[Any, Any], us: float) -> Iterator[Row]:
    """Yield a counter event with the number of open intervals at each time that changes it."""
    times, at = np.unique(np.concatenate((begin, end)), return_inverse=True)
    change = np.bincount(at, weights=np.repeat((1, -1), len(begin)), minlength=len(times)).astype(np.int64)
    for time, count in zip(times.tolist(), np.cumsum(change).tolist(), strict=True):
        yield {"ph": "C", "name": name, "pid": _COUNTERS, "tid": 0, "ts": time * us, "args": {"tasks": count}}


# -- traces ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One task in simulated time, in cycles."""

    task: int
    name: str
    executor: int
    start: int
    end: int
    ready: int


@dataclass(frozen=True, slots=True)
class Home:
    """The pool and the AICPU of an executor."""

    pool: int
    aicpu: int


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """By task: its submission in cycles, what delayed it last (PTO_HELD_ in words), and the task whose end did so, -1 for none."""

    submit: np.ndarray[Any, Any]
    held: Sequence[str]
    task: np.ndarray[Any, Any]


@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Tasks in submission order as columns: start, end and ready in cycles, executor; names are made on demand.

    `homes`: by executor. `clock_ghz`: the arch's clock; None if it has none.
    """

    start: np.ndarray[Any, Any]
    end: np.ndarray[Any, Any]
    ready: np.ndarray[Any, Any]
    executor: np.ndarray[Any, Any]
    kernel: np.ndarray[Any, Any]
    kernels: tuple[str, ...]
    names: Sequence[str]
    n_executors: int
    total_cycles: int
    homes: tuple[Home, ...] = ()
    clock_ghz: float | None = None
    causes: Causes | None = None

    @property
    def unit(self) -> str:
        """The unit of times."""
        return "cycles"

    @property
    def place(self) -> str:
        """The kind of place that tasks run on."""
        return "executor"

    def about(self) -> dict[str, object]:
        """Return the metadata of the Perfetto file."""
        clock = f"{self.clock_ghz} GHz" if self.clock_ghz else "none: a cycle is shown as a microsecond"
        return {"clock": clock, "total_cycles": self.total_cycles}

    def to_perfetto(self, path: str | Path) -> Path:
        """Write the trace as Chrome JSON for ui.perfetto.dev and return the path.

        A process is an AICPU, a thread an executor; arrows show what tasks waited for last, counters how many tasks were submitted and how
        many were ready. Times use the arch's clock; without one a cycle is a microsecond.

        Raises: C108 if the file cannot be written, T205 if `path` is no path.
        """
        if not isinstance(path, str | Path):
            raise ArgumentKindError("to_perfetto takes a path", here(), expected='"trace.json"', found=repr(path))
        return write_perfetto(self, Path(path))

    def home_of(self, executor: int) -> Home:
        """Return the pool and AICPU of an executor."""
        return self.homes[executor] if self.homes else Home(0, executor)

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[TraceEvent]:
        for task in range(len(self)):
            yield self[task]

    def __getitem__(self, task: int) -> TraceEvent:
        if not -len(self) <= task < len(self):
            raise IndexError(task)
        task %= len(self)
        return TraceEvent(task, self.names[task], int(self.executor[task]), int(self.start[task]), int(self.end[task]),
                          int(self.ready[task]))


@dataclass(frozen=True, slots=True, eq=False)
class WallTrace(Trace):
    """A trace of wall time: start and end in ns since the first task began; threads take the place of executors.

    `timeline` and `to_perfetto` accept it. `ready` equals `start`, because the clock is not read before. `recording_ns`: the cost of two
    clock reads and a write per task, measured at the start of the same run.
    """

    recording_ns: float = 0.0

    @property
    def unit(self) -> str:
        """The unit of times."""
        return "ns"

    @property
    def place(self) -> str:
        """The kind of place that tasks run on."""
        return "thread"

    def about(self) -> dict[str, object]:
        """Return the metadata of the Perfetto file."""
        return {"clock": "monotonic", "total_ns": self.total_ns, "recording_ns": self.recording_ns, "recording_share": self.recording_share}

    @property
    def total_ns(self) -> int:
        """The time from the start of the first task to the end of the last."""
        return self.total_cycles

    @property
    def busy_ns(self) -> tuple[int, ...]:
        """By thread: the time in which tasks ran."""
        return tuple(int((self.end - self.start)[self.executor == thread].sum()) for thread in range(self.n_executors))

    @property
    def tasks_run(self) -> tuple[int, ...]:
        """By thread: the number of tasks run."""
        return tuple(np.bincount(self.executor, minlength=self.n_executors).tolist())

    @property
    def recording_share(self) -> float:
        """The fraction of the run that the thread with the most tasks spent recording."""
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


_MOST_IDLE = 8      # with more threads, idle ones are only counted


def _time(ns: int) -> str:
    """Return a time as text in a suitable unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:,.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns} ns"


def wall_trace_of(plan: TaskPlan, columns: RecordColumns, times: WallTimes, threads: int) -> WallTrace:
    """Return the wall-clock trace of a complete run. `threads`: the number of threads available."""
    origin = int(times.start.min()) if len(times.start) else 0
    start, end = times.start - origin, times.end - origin
    return WallTrace(start, end, start, times.thread.astype(np.int64), columns.task_kernel, tuple(use.kernel.name for use in plan.kernels),
                     RecordNames(plan, columns), threads, int(end.max()) if len(end) else 0, (Home(0, 0),) * threads, 1.0,
                     recording_ns=times.row_ns)
