"""Wrap the runtime library's recorder and simulator: status codes, simulated times, records of the task stream."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.artifact.build import LoadedArtifact, Runtime
from pto_wsp.errors import InternalError
from pto_wsp.ir.channels import Stuck, Wait
from pto_wsp.ir.execution_rules import ExecutionRules, WindowUnit
from pto_wsp.run.failures import CyclesOverflow, WindowFull
from pto_wsp.run.record import RecordColumns, RecordedArg, read_columns
from pto_wsp.values import dataclass


def check_status(status: int, what: str) -> None:
    """Raise the exception for a library status that is not a user error; KeyboardInterrupt if Ctrl-C ended the call."""
    if status == 1:
        raise MemoryError(f"{what} ran out of memory")
    if status == 4:
        raise KeyboardInterrupt
    if status != 0:
        raise InternalError(f"{what} ended with status {status}")


def interruptible() -> int:
    """Return the option `interruptible` of a call: 1 on the main thread, the only one that receives Ctrl-C."""
    return int(threading.current_thread() is threading.main_thread())


# -- the simulator -----------------------------------------------------------------------------------------------------
Column: TypeAlias = np.ndarray[Any, Any]


class LastWait(IntEnum):
    """PTO_HELD_: what a task waited for last before it ran."""

    NOT = 0
    EDGE = 1
    EXECUTOR = 2
    WINDOW = 3
    MARK = 4
    RELEASE = 5
    START = 6
    SUBMIT = 7
    DISPATCH = 8
    CALENDAR = 9
    BYTES = 10
    ENTRIES = 11
    EDGES = 12
    READY = 13


# by PTO_STALL_ in pto_abi.h; 0 is a mark without a reason
STALL_REASONS = ("", "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "DATA_READ_WAIT", "EVENT_WAIT")
# what a task waits for at a window, by the window's unit
WAITS_FOR_ROOM: Mapping[LastWait, WindowUnit] = {
    LastWait.WINDOW: WindowUnit.TASKS, LastWait.BYTES: WindowUnit.BYTES, LastWait.ENTRIES: WindowUnit.ENTRIES,
    LastWait.EDGES: WindowUnit.EDGES, LastWait.READY: WindowUnit.READY}


@dataclass(frozen=True, slots=True, eq=False)
class HopTimes:
    """The simulated times of copies that took several links, a row a link, ordered by task and time, as columns in cycles.

    `ready`: when the copy came to the link. `held_by`: the task on the link that it waited for, -1 for none.
    """

    task: Column
    executor: Column
    ready: Column
    start: Column
    end: Column
    held_by: Column

    def __len__(self) -> int:
        return len(self.task)

    def of(self, task: int) -> range:
        """Return the rows of a task."""
        return range(*np.searchsorted(self.task, (task, task + 1)).tolist())

    @property
    def waits(self) -> Column:
        """The cycles that each copy waited for each link but its first one."""
        is_later = np.append(False, self.task[1:] == self.task[:-1])[:len(self)]
        return np.asarray((self.start - self.ready) * is_later)


@dataclass(frozen=True, slots=True, eq=False)
class TaskTimes:
    """The simulated times of each task, as columns in cycles.

    `complete`: when successors saw the task's end. `held`: a `Held`; `held_by`: a node or task of the stream, -1 for none. Of a copy over
    several links, which are in `hops`, `start`, `executor` and what held it are those of the first one, `end` of the last.
    """

    submit: Column
    ready: Column
    start: Column
    end: Column
    complete: Column
    executor: Column
    held: Column
    held_by: Column
    hops: HopTimes


@dataclass(frozen=True, slots=True)
class WindowUse:
    """What streams took of one unit: stalls for want of room (with BENCHMARK, tasks without room), their cycles, the most of one stream."""

    stalls: int
    stall_cycles: int
    high_water: int


@dataclass(frozen=True, slots=True, eq=False)
class SimResult:
    """The result of a simulation; times are cycles. `windows`: by `WindowUnit`.

    By executor: pool; cycles busy, waiting for a dependency, and late; tasks run. `stalls`, `stall_cycles`: by PTO_STALL_, number and
    cycles of stalls at marks. `memory_cycles`: cycles lost to contention for memory. `tasks`: None if no trace is kept.
    """

    total_cycles: int
    n_tasks: int
    n_executors: int
    critical_path: int
    work: int
    windows: tuple[WindowUse, ...]
    stalls: tuple[int, ...]
    stall_cycles: tuple[int, ...]
    memory_cycles: int
    pool: tuple[int, ...]
    busy: tuple[int, ...]
    waiting: tuple[int, ...]
    late: tuple[int, ...]
    tasks_run: tuple[int, ...]
    tasks: TaskTimes | None


class SimulationStuck(Exception):
    """Some tasks can never run under the rules: a calendar does not fit them, or copies have filled the buffers of links in a circle.

    `times`: what had happened until then; None where no trace is kept.
    """

    def __init__(self, times: TaskTimes | None) -> None:
        super().__init__()
        self.times = times


def new_sim(runtime: Runtime, rules: ExecutionRules, *, keep_trace: bool) -> Any:
    """Return a simulator without tasks."""
    ffi = runtime.ffi
    pools, starts = ffi.new("int64_t[]", list(rules.pool_size or (0,))), ffi.new("int64_t[]", list(rules.starts))
    more = ffi.new("pto_window[]", [(bound.size, int(bound.unit), int(bound.full)) for bound in rules.more])
    options = ffi.new("pto_sim_options *", {**rules.sim_options(), "pool_size": pools, "n_pools": len(rules.pool_size or ()),
                                            "starts": starts, "more": more, "keep_trace": int(keep_trace),
                                            "interruptible": interruptible()})
    raw = runtime.lib.pto_sim_new(options)
    if raw == runtime.ffi.NULL:
        raise MemoryError("no memory for the simulator")
    return runtime.ffi.gc(raw, runtime.lib.pto_sim_free)


def feed_columns(runtime: Runtime, sim: Any, columns: Any) -> None:
    """Feed a simulator the next tasks: a pto_columns that continues the stream.

    Raises: SimulationStuck, SimulationEnded, KeyboardInterrupt.
    """
    _check_sim(runtime, sim, runtime.lib.pto_sim_feed_columns(sim, columns))


def finish_sim(runtime: Runtime, sim: Any) -> SimResult:
    """Drain a simulator and return its result.

    Raises: SimulationStuck, SimulationEnded, KeyboardInterrupt.
    """
    ffi = runtime.ffi
    out = ffi.new("pto_sim_result *")
    status = runtime.lib.pto_sim_finish(sim, out)
    if status != runtime.lib.PTO_E_DEADLOCK:
        _check_sim(runtime, sim, status)

    def per_executor(pointer: Any) -> tuple[int, ...]:
        return tuple(ffi.unpack(pointer, out.n_executors))

    def per_task(pointer: Any, dtype: type = np.int64) -> Column:
        if out.n_tasks == 0:
            return np.zeros(0, dtype)
        return np.frombuffer(ffi.buffer(pointer, out.n_tasks * np.dtype(dtype).itemsize), dtype).copy()

    tasks = None
    if out.n_tasks == 0 or out.submit != ffi.NULL:
        tasks = TaskTimes(per_task(out.submit), per_task(out.ready), per_task(out.start), per_task(out.end), per_task(out.complete),
                          per_task(out.executor), per_task(out.held, np.uint8), per_task(out.held_by), _hops(ffi, out))
    if status == runtime.lib.PTO_E_DEADLOCK:
        raise SimulationStuck(tasks)

    windows = tuple(WindowUse(use.stalls, use.stall_cycles, use.high_water) for use in out.windows)
    return SimResult(
        out.total_cycles, out.n_tasks, out.n_executors, out.critical_path, out.work, windows, tuple(out.stalls), tuple(out.stall_cycles),
        out.memory_cycles, per_executor(out.pool), per_executor(out.busy), per_executor(out.waiting), per_executor(out.late),
        per_executor(out.tasks_run), tasks)


def _hops(ffi: Any, out: Any) -> HopTimes:
    rows = np.zeros((0, 6), np.int64)
    if out.n_hops:
        rows = np.frombuffer(ffi.buffer(out.hops, out.n_hops * ffi.sizeof("pto_sim_hop")), np.int64).reshape(-1, 6)
    return HopTimes(*rows[np.argsort(rows[:, 0], kind="stable")].T.copy())


def _check_sim(runtime: Runtime, sim: Any, status: int) -> None:
    if status == runtime.lib.PTO_E_WINDOW:
        out = runtime.ffi.new("pto_sim_result *")
        runtime.lib.pto_sim_finish(sim, out)
        raise WindowFull(out.failed_task, WindowUnit(out.failed_window), out.failed_need, out.windows[out.failed_window].high_water)
    if status == runtime.lib.PTO_E_OVERFLOW:
        out = runtime.ffi.new("pto_sim_result *")
        runtime.lib.pto_sim_finish(sim, out)
        raise CyclesOverflow(out.failed_task)
    if status == runtime.lib.PTO_E_DEADLOCK:
        finish_sim(runtime, sim)       # raises with the times so far
    check_status(status, "simulation")


# -- records -----------------------------------------------------------------------------------------------------------
MAX_RECORDED_TASKS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class RegionColumns:
    """The bound regions of all tasks, a row a memory parameter: those of task t are begin[t] .. begin[t + 1].

    `address`: of the first element. `extent`, `stride`: [row, 2], in elements.
    """

    begin: Column
    address: Column
    extent: Column
    stride: Column


_ARG = np.dtype([("data", np.int64), ("extent", np.int64, 2), ("stride", np.int64, 2), ("buffer", np.int32), ("flags", np.int32),
                 ("elem_bytes", np.int32), ("reserved", np.int32)])     # pto_arg


class Recorder:
    """A record of the task stream, in the runtime library's memory."""

    def __init__(self, runtime: Runtime, rules: ExecutionRules, *, infer: bool, prunes: bool = True, max_tasks: int = MAX_RECORDED_TASKS,
                 poison: bool = False, written_by: LoadedArtifact | None = None) -> None:
        """Create an empty record.

        `prunes`: conflicts with tasks that have left the window are forgotten in a record that drops tasks. `written_by`: the artifact
        whose orchestrator writes the record, kept open as long as the record.
        """
        self.runtime = runtime
        self.written_by = written_by
        ffi = runtime.ffi
        options = ffi.new("pto_record_options *", {
            **rules.record_options(max_tasks), "forgets_nothing": int(not prunes or rules.counts_edges), "infer": int(infer),
            "poison": int(poison)})
        raw = runtime.lib.pto_record_new(options)
        if raw == ffi.NULL:
            raise MemoryError("no memory for the record of the task stream")
        self.raw = ffi.gc(raw, runtime.lib.pto_record_free)
        self.generation = 0     # number of streams recorded so far

    def args_of(self, task: int) -> tuple[RecordedArg, ...]:
        """Return the bound regions of the memory parameters of the task at position `task`."""
        ffi, raw = self.runtime.ffi, self.raw_columns()
        return tuple(RecordedArg(int(arg.buffer), int(ffi.cast("intptr_t", arg.data)), (arg.extent[0], arg.extent[1]),
                                 (arg.stride[0], arg.stride[1]), arg.elem_bytes)
                     for arg in (raw.args[k] for k in range(raw.arg_begin[task], raw.arg_begin[task + 1])))

    def regions(self) -> RegionColumns:
        """Return a copy of the bound regions of all tasks in the record."""
        ffi, raw = self.runtime.ffi, self.raw_columns()
        n = int(raw.n_tasks)
        begin = np.frombuffer(ffi.buffer(raw.arg_begin, 8 * (n + 1)), np.int64).copy() if n else np.zeros(1, np.int64)
        size = int(begin[-1]) * _ARG.itemsize
        rows = np.frombuffer(ffi.buffer(raw.args, size), _ARG) if size else np.zeros(0, _ARG)
        return RegionColumns(begin, rows["data"].copy(), rows["extent"].copy(), rows["stride"].copy())

    def columns(self) -> RecordColumns:
        """Return a copy of the record's columns."""
        return read_columns(self.runtime, self.raw)

    def raw_columns(self) -> Any:
        """Return the record's pto_columns, which point into its memory and are valid until it changes."""
        raw = self.runtime.ffi.new("pto_columns *")
        self.runtime.lib.pto_record_columns(self.raw, raw)
        return raw

    def memory(self) -> int:
        """Return the peak bytes of tensors allocated in bodies since the stream began."""
        out = self.runtime.ffi.new("pto_memory *")
        self.runtime.lib.pto_record_memory(self.raw, out)
        return int(out.peak_bytes)

    def stuck(self) -> tuple[Stuck, ...]:
        """Return where the streams of a stuck pipeline are."""
        rows = self.runtime.ffi.new("const pto_stuck **")
        n = self.runtime.lib.pto_record_stuck(self.raw, rows)
        return tuple(Stuck(row.stream, row.site, Wait(row.waits_for), row.channel, row.position, None if row.peer < 0 else row.peer)
                     for row in rows[0][0:n])

    def simulate(self, rules: ExecutionRules, *, keep_trace: bool) -> SimResult:
        """Replay the record in simulated time.

        Raises: SimulationStuck, SimulationEnded.
        """
        sim = new_sim(self.runtime, rules, keep_trace=keep_trace)
        feed_columns(self.runtime, sim, self.raw_columns())
        return finish_sim(self.runtime, sim)
