"""Hold traces of a run, and write them as Chrome JSON for ui.perfetto.dev and chrome://tracing.

`Trace` has the simulated times in cycles, `WallTrace` the measured times of a native run in ns. In the JSON a process is an AICPU, a thread
an executor, a slice a task; an arrow leads from the task whose end another task waited for last. Counters show the tasks submitted but not
ended, and those ready but not running.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import CommandError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.pickling import with_computed
from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import RecordColumns, WallTimes
from pto_wsp.run.simulator import HopTimes
from pto_wsp.source import here
from pto_wsp.timing.arguments import file_path
from pto_wsp.values import dataclass
from pto_wsp.wording import counted

Column: TypeAlias = "np.ndarray[Any, Any]"

_COUNTERS = 1 << 20        # process id of the counters, above all AICPUs


# -- Chrome JSON -------------------------------------------------------------------------------------------------------
def write_perfetto(trace: Trace, path: Path) -> Path:
    """Write a trace as Chrome JSON and return the path.

    Raises: C108 if the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            file.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(trace.about())},"traceEvents":[\n')
            written = False
            for rows in _perfetto_rows(trace):
                file.write(",\n" * (written and bool(rows)) + ",\n".join(rows))
                written |= bool(rows)
            file.write("\n]}\n")
    except OSError as problem:
        raise CommandError("the trace cannot be written there", here(), found=str(problem)) from None
    return path


def _perfetto_rows(trace: Trace) -> Iterator[list[str]]:
    """Yield the events of a trace as JSON, kind by kind: process and thread names, tasks, arrows, counters."""
    us = 1.0 if not trace.clock_ghz else 1e-3 / trace.clock_ghz
    homes = [trace.home_of(executor) for executor in range(trace.n_executors)]
    yield [_metadata("process_name", aicpu, 0, _process_name(trace, aicpu, homes))
           for aicpu in sorted({home.aicpu for home in homes})]
    several = len({home.pool for home in homes}) > 1
    yield [_metadata("thread_name", home.aicpu, executor, trace.name_of(executor) + f" (pool {home.pool})" * (several and not home.name))
           for executor, home in enumerate(homes)]
    yield _slices(trace, homes, us)
    if trace.causes is None:
        return
    yield _arrows(trace, trace.causes, homes, us)
    yield [_metadata("process_name", _COUNTERS, 0, "tasks")]
    yield _counter("submitted, not ended", trace.causes.submit, trace.end, us)
    yield _counter("ready, not running", np.maximum(trace.ready, trace.causes.submit), trace.start, us)


def _process_name(trace: Trace, aicpu: int, homes: Sequence[Home]) -> str:
    if trace.place != "executor":
        return "host"
    name = next((home.name for home in homes if home.aicpu == aicpu), "")
    return " ".join(name.split()[:2]) or f"AICPU {aicpu}"


def _metadata(what: str, process: int, thread: int, name: str) -> str:
    return f'{{"ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{{"name":{_text(name)}}}}}'


_text = json.encoder.encode_basestring       # a string as JSON, other than ASCII as it is


def _places(trace: Trace, homes: Sequence[Home]) -> list[str]:
    """Return the process and thread of each executor as JSON."""
    return [f'"pid":{home.aicpu},"tid":{executor}' for executor, home in enumerate(homes)]


def _slices(trace: Trace, homes: Sequence[Home], us: float) -> list[str]:
    """Return an event for each task, of a copy over several links one for each."""
    places, kernels = _places(trace, homes), [_text(name) for name in trace.kernels]
    spans = trace.spans
    length = spans.end - spans.start
    names = [_text(name) for name in trace.names]
    rows: Iterable[tuple[Any, ...]] = zip(
        spans.task.tolist(), spans.kernel.tolist(), spans.executor.tolist(), (spans.start * us).tolist(), (length * us).tolist(),
        length.tolist(), strict=True)
    said = [""] * len(trace)
    if trace.place == "executor":
        said = [f',"ready":{ready}' for ready in trace.ready.tolist()]
    if trace.causes is not None:
        said = [f'{more},"submitted":{submit},"delayed by":"{held}"'
                for more, submit, held in zip(said, trace.causes.submit.tolist(), trace.causes.held, strict=True)]
    unit = trace.unit
    return [f'{{"ph":"X","name":{names[task]},"cat":{kernels[kernel]},{places[executor]},"ts":{start},"dur":{duration},'
            f'"args":{{"task":{task},"{unit}":{cycles}{said[task]}}}}}'
            for task, kernel, executor, start, duration, cycles in rows]


def _arrows(trace: Trace, causes: Causes, homes: Sequence[Home], us: float) -> list[str]:
    """Return two events, a start and an end, for each task that another one delayed last."""
    places = _places(trace, homes)
    tasks = np.flatnonzero(causes.task >= 0)
    sources = causes.task[tasks]
    spans = trace.spans
    span = np.searchsorted(spans.task, sources, side="right") - 1             # of a copy the one on its last link
    last = np.maximum(spans.start[span], spans.end[span] - 1) * us            # inside the slice: viewers attach no arrow at its end
    rows = zip(tasks.tolist(), spans.executor[span].tolist(), last.tolist(), trace.executor[tasks].tolist(),
               (trace.start[tasks] * us).tolist(), strict=True)
    return [f'{{"ph":"s","name":"{causes.held[task]}","cat":"waits","id":{task},{places[before]},"ts":{begin}}},\n'
            f'{{"ph":"f","bp":"e","name":"{causes.held[task]}","cat":"waits","id":{task},{places[after]},"ts":{end}}}'
            for task, before, begin, after, end in rows]


def _counter(name: str, begin: Column, end: Column, us: float) -> list[str]:
    """Return an event with the number of open intervals at each time that changes it."""
    times, at = np.unique(np.concatenate((begin, end)), return_inverse=True)
    change = np.bincount(at, weights=np.repeat((1, -1), len(begin)), minlength=len(times)).astype(np.int64)
    return [f'{{"ph":"C","name":"{name}","pid":{_COUNTERS},"tid":0,"ts":{time},"args":{{"tasks":{count}}}}}'
            for time, count in zip((times * us).tolist(), np.cumsum(change).tolist(), strict=True)]


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
    """The pool and the AICPU of an executor; of a mesh, what the executor is called: `rank 0 link to rank 1`."""

    pool: int
    aicpu: int
    name: str = ""

    @property
    def is_link(self) -> bool:
        """Whether copies between ranks take the executor, and no kernels."""
        return " link " in self.name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Causes:
    """By task: its submission in cycles, the last cause of its delay (PTO_HELD_ in words), and the task it waited for, -1 for none."""

    submit: np.ndarray[Any, Any]
    held: Sequence[str]
    task: np.ndarray[Any, Any]

    def __repr__(self) -> str:
        return f"Causes({len(self.held)} tasks)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spans:
    """Times in which executors were busy, as columns, ordered by task."""

    task: Column
    executor: Column
    start: Column
    end: Column
    kernel: Column

    def __repr__(self) -> str:
        return f"Spans({len(self.task)} of {len(np.unique(self.task))} tasks)"


@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace(Displayed):
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
    stats: Callable[[], object] | None = None        # the `Stats` of the run, where they are known
    hops: HopTimes | None = None                     # of copies that take several links

    def __reduce__(self) -> tuple[object, ...]:
        return with_computed(self, "stats")

    @property
    def spans(self) -> Spans:
        """The spans in which executors were busy: one for each task; for a copy over several links, one for each link."""
        if self.hops is None or not len(self.hops):
            return Spans(np.arange(len(self)), self.executor, self.start, self.end, self.kernel)
        one = np.ones(len(self), bool)
        one[self.hops.task] = False
        task = np.concatenate((np.flatnonzero(one), self.hops.task))
        order = np.argsort(task, kind="stable")
        executor, start, end = (np.concatenate((own[one], hop))[order] for own, hop in (
            (self.executor, self.hops.executor), (self.start, self.hops.start), (self.end, self.hops.end)))
        return Spans(task[order], executor, start, end, self.kernel[task[order]])

    @property
    def n_ran(self) -> int:
        """The number of tasks that have times."""
        return len(self)

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

    def __repr__(self) -> str:
        used = len(np.unique(self.spans.executor))
        places = f"{used} of {counted(self.n_executors, self.place)}"
        return f"{type(self).__name__}({counted(self.n_ran, 'task')} on {places}, {self.total_cycles} {self.unit})"

    def to_perfetto(self, path: str | Path) -> Path:
        """Write the trace as Chrome JSON for ui.perfetto.dev and return the path.

        A process is an AICPU, a thread an executor; arrows show what tasks waited for last, counters how many tasks were submitted and how
        many were ready. Times use the arch's clock; without one a cycle is a microsecond.

        Raises: C108 if the file cannot be written, T205 if `path` is no path.
        """
        return write_perfetto(self, file_path("to_perfetto", path, "trace.json"))

    def columns(self) -> Mapping[str, Column]:
        """Return the tasks as columns, one element a task: `pandas.DataFrame(trace.columns())`.

        `task`: the number. `kernel`. `label`, if a task has one. Loop variables and bracket indices by name: int64, or float64 with NaN
        where tasks have no such index; a constant index is named by its place, `index_0`. `executor`, `pool`, `aicpu`. `start`, `end`,
        `ready`, in the unit of the trace. If causes are known: `submitted`, `delayed_by` in words, `delayed_by_task`, -1 for none.
        """
        names = self.names.index_columns() if isinstance(self.names, RecordNames) else {}
        homes = [self.home_of(executor) for executor in range(self.n_executors)]
        found: dict[str, Column] = {"task": np.arange(len(self)), "kernel": np.array(self.kernels, object)[self.kernel]}
        pool, aicpu = (np.array([getattr(home, field) for home in homes], np.int64)[self.executor] for field in ("pool", "aicpu"))
        own: dict[str, Column] = {"executor": self.executor, "pool": pool, "aicpu": aicpu, "start": self.start, "end": self.end,
                                  "ready": self.ready}
        if self.causes is not None:
            own |= {"submitted": self.causes.submit, "delayed_by": np.array(self.causes.held, object), "delayed_by_task": self.causes.task}
        taken = found.keys() | own.keys()
        found |= {f"{name}_index" if name in taken else name: column for name, column in names.items()}
        return found | own

    def home_of(self, executor: int) -> Home:
        """Return the pool and AICPU of an executor."""
        return self.homes[executor] if self.homes else Home(0, executor)

    def name_of(self, executor: int) -> str:
        """Return what an executor is called."""
        return self.home_of(executor).name or f"{self.place} {executor}"

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WallTrace(Trace):
    """A trace of wall time: start and end in ns since the first task began; threads take the place of executors.

    `timeline` and `to_perfetto` accept it. `ready` equals `start`, because the clock is not read before. `recording_ns`: the cost of two
    clock reads and a write per task, measured at the start of the same run. Over MPI, tasks of other ranks and
    copies between ranks have executor -1 and no time.
    """

    recording_ns: float = 0.0

    @property
    def spans(self) -> Spans:
        """The spans in which threads were busy: one for each task that this process ran."""
        ran = np.flatnonzero(self.executor >= 0)
        return Spans(ran, self.executor[ran], self.start[ran], self.end[ran], self.kernel[ran])

    @property
    def n_ran(self) -> int:
        """The number of tasks that this process ran."""
        return int((self.executor >= 0).sum())

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
        return tuple(np.bincount(self.spans.executor, minlength=self.n_executors).tolist())

    @property
    def recording_share(self) -> float:
        """The fraction of the run that the thread with the most tasks spent recording."""
        return min(1.0, self.recording_ns * max(self.tasks_run, default=0) / self.total_ns) if self.total_ns else 0.0

    def __str__(self) -> str:
        tasks = self.tasks_run
        used = sum(count > 0 for count in tasks)
        lines = [f"{counted(self.n_ran, 'task')} on {used} of {counted(len(tasks), 'thread')} "
                 f"in {_time(self.total_ns)}", f"{'thread':<10}{'busy':>18}{'tasks':>12}"]
        lines += [f"{thread:>4}{_time(busy):>18}{busy / max(1, self.total_ns):>6.0%}{count:>12}"
                  for thread, (busy, count) in enumerate(zip(self.busy_ns, tasks, strict=True)) if count or len(tasks) <= _MOST_IDLE]
        if len(lines) < len(tasks) + 2:
            lines.append(f"… and {len(tasks) + 2 - len(lines)} idle threads")
        return "\n".join([*lines, f"recording took about {self.recording_ns:.0f} ns a task, {self.recording_share:.1%} of the run"])


_LAST_NS = (1 << 63) - 1
_MOST_IDLE = 8      # with more threads, idle ones are only counted


def _time(ns: int) -> str:
    """Return a time as text in a suitable unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:,.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns} ns"


def wall_trace_of(plan: TaskPlan, columns: RecordColumns, times: WallTimes, threads: int) -> WallTrace:
    """Return the wall-clock trace of a complete run. `threads`: the number of threads available."""
    ran = times.thread >= 0
    origin = int(times.start.min(where=ran, initial=_LAST_NS)) if ran.any() else 0
    start, end = (np.where(ran, given - origin, 0) for given in (times.start, times.end))
    return WallTrace(start, end, start, times.thread.astype(np.int64), columns.task_kernel, tuple(use.kernel.name for use in plan.kernels),
                     RecordNames(plan, columns), threads, int(end.max()) if len(end) else 0, (Home(0, 0),) * threads, 1.0,
                     recording_ns=times.row_ns)
