"""Run an artifact: orchestrate into a record, execute it on threads, keep it for later runs and for the simulator."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.artifact.build import LoadedArtifact, Runtime
from pto_wsp.errors import BindingError, InternalError, ThreadStartError, raise_all
from pto_wsp.plan.channel_state import Stuck, Wait
from pto_wsp.plan.model import TaskPlan, is_float_symbol
from pto_wsp.plan.rules import ExecutionRules, FullWindow
from pto_wsp.plan.waits import has_waits
from pto_wsp.runtime.binding import Array, Bindings
from pto_wsp.runtime.failures import bounds_error
from pto_wsp.runtime.finite import native_error
from pto_wsp.runtime.prints import Prints, has_prints, new_prints, read_prints, shortening, until
from pto_wsp.runtime.record import RecordColumns, RecordedArg, read_columns
from pto_wsp.runtime.sanitize.watch import Sanitized, Watch, new_seed, replay_text, with_seed
from pto_wsp.runtime.stuck import run_stuck_error
from pto_wsp.runtime.wall import WallTimes, new_wall, read_wall
from pto_wsp.runtime.window import WindowFull, window_error
from pto_wsp.values import dataclass

MAX_RECORDED_TASKS = 1 << 20


def default_threads() -> int:
    """Return PTO_WSP_THREADS, else the number of CPUs that this process may use.

    Raises: R102 when the variable is no whole number >= 1.
    """
    text = os.environ.get("PTO_WSP_THREADS")
    if text is None:
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if not text.isdecimal() or int(text) < 1:
        raise BindingError("PTO_WSP_THREADS is no number of threads", expected="a whole number >= 1", found=repr(text))
    return int(text)


Column: TypeAlias = np.ndarray[Any, Any]


class Held(IntEnum):
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


@dataclass(frozen=True, slots=True, eq=False)
class SimResult:
    """What the simulator found. Times are cycles.

    Per executor: its pool, cycles busy, waiting for a dependency and late, tasks run. Per task, None where no trace is kept: submit,
    start, end, ready, executor, held (a `Held`) and held_by (a node or task of the stream, -1 for none). stalls and stall_cycles are
    by PTO_STALL_: how often and how long a stream stood at a mark. `memory_cycles`: that tasks took longer because of others in memory.
    `window_task`: the task that found no room, -1 for none.
    """

    total_cycles: int
    n_tasks: int
    n_executors: int
    critical_path: int
    work: int
    window_stalls: int
    window_stall_cycles: int
    window_high_water: int
    window_task: int
    stalls: tuple[int, ...]
    stall_cycles: tuple[int, ...]
    memory_cycles: int
    pool: tuple[int, ...]
    busy: tuple[int, ...]
    waiting: tuple[int, ...]
    late: tuple[int, ...]
    tasks_run: tuple[int, ...]
    submit: Column | None
    start: Column | None
    end: Column | None
    ready: Column | None
    executor: Column | None
    held: Column | None
    held_by: Column | None


class Recorder:
    """A record of the task stream, in the runtime library's memory."""

    def __init__(self, runtime: Runtime, rules: ExecutionRules, *, infer: bool, prunes: bool = True, max_tasks: int = MAX_RECORDED_TASKS,
                 poison: bool = False) -> None:
        """`prunes`: conflicts with tasks that have left the window, in a record that drops tasks, are forgotten."""
        self.runtime = runtime
        ffi = runtime.ffi
        options = ffi.new("pto_record_options *", {
            **rules.record_options(), "forgets_nothing": int(not prunes), "infer": int(infer), "poison": int(poison),
            "max_tasks": 0 if rules.calendar else max_tasks})    # only all tasks together say which one an executor is to begin with
        raw = runtime.lib.pto_record_new(options)
        if raw == ffi.NULL:
            raise MemoryError("no memory for the record of the task stream")
        self.raw = ffi.gc(raw, runtime.lib.pto_record_free)
        self.generation = 0     # of what it holds: the streams recorded so far

    def args_of(self, task: int) -> tuple[RecordedArg, ...]:
        """Return what the memory parameters of the task at position `task` are bound to."""
        ffi, raw = self.runtime.ffi, self.raw_columns()
        return tuple(RecordedArg(int(arg.buffer), int(ffi.cast("intptr_t", arg.data)), (arg.extent[0], arg.extent[1]),
                                 (arg.stride[0], arg.stride[1]), arg.elem_bytes)
                     for arg in (raw.args[k] for k in range(raw.arg_begin[task], raw.arg_begin[task + 1])))

    def columns(self) -> RecordColumns:
        """Return the record's columns, copied."""
        return read_columns(self.runtime, self.raw)

    def raw_columns(self) -> Any:
        """Return the record's pto_columns: they point into its memory, until it changes."""
        raw = self.runtime.ffi.new("pto_columns *")
        self.runtime.lib.pto_record_columns(self.raw, raw)
        return raw

    def memory(self) -> int:
        """Return the most bytes that tensors made in bodies took at a time since the stream began."""
        out = self.runtime.ffi.new("pto_memory *")
        self.runtime.lib.pto_record_memory(self.raw, out)
        return int(out.peak_bytes)

    def stuck(self) -> tuple[Stuck, ...]:
        """Return what the streams of a pipeline stand at that cannot go on."""
        found = self.runtime.ffi.new("const pto_stuck **")
        n = self.runtime.lib.pto_record_stuck(self.raw, found)
        return tuple(Stuck(row.stream, row.site, Wait(row.waits_for), row.channel, row.position, None if row.peer < 0 else row.peer)
                     for row in found[0][0:n])

    def simulate(self, rules: ExecutionRules, *, keep_trace: bool) -> SimResult:
        """Replay the record in virtual time.

        Raises: SimulationStuck, WindowFull.
        """
        raw = self.raw_columns()
        sim = new_sim(self.runtime, with_workers(self.runtime, rules, raw), keep_trace=keep_trace)
        feed_columns(self.runtime, sim, raw)
        return finish_sim(self.runtime, sim)


class SimulationStuck(Exception):
    """Not all tasks can run under the rules: under those of a calendar that does not fit them."""


def with_workers(runtime: Runtime, rules: ExecutionRules, raw: Any) -> ExecutionRules:
    """Return the rules with as many workers as the tasks of a pto_columns name, where a calendar leaves that to them."""
    if rules.n_workers or not raw.n_tasks:
        return rules if rules.n_workers else replace(rules, n_workers=1)
    workers = np.frombuffer(runtime.ffi.buffer(raw.task_worker, raw.n_tasks * 8), np.int64)
    return replace(rules, n_workers=int(workers.max()) + 1)


def new_sim(runtime: Runtime, rules: ExecutionRules, *, keep_trace: bool) -> Any:
    """Return a simulator that has seen no task yet."""
    ffi = runtime.ffi
    pools = ffi.new("int64_t[]", list(rules.pool_size or (0,)))
    options = ffi.new("pto_sim_options *", {**rules.sim_options(), "pool_size": pools, "n_pools": len(rules.pool_size or ()),
                                            "keep_trace": int(keep_trace)})
    raw = runtime.lib.pto_sim_new(options)
    if raw == runtime.ffi.NULL:
        raise MemoryError("no memory for the simulator")
    return runtime.ffi.gc(raw, runtime.lib.pto_sim_free)


def feed_columns(runtime: Runtime, sim: Any, columns: Any) -> None:
    """Give a simulator tasks: a pto_columns that follows what it has been fed.

    Raises: SimulationStuck, WindowFull.
    """
    _check_sim(runtime, sim, runtime.lib.pto_sim_feed_columns(sim, columns))


def finish_sim(runtime: Runtime, sim: Any) -> SimResult:
    """Drain a simulator and return what it found.

    Raises: SimulationStuck, WindowFull.
    """
    ffi = runtime.ffi
    out = ffi.new("pto_sim_result *")
    _check_sim(runtime, sim, runtime.lib.pto_sim_finish(sim, out))

    def per_executor(pointer: Any) -> tuple[int, ...]:
        return (0,) * out.n_executors if pointer == ffi.NULL else tuple(ffi.unpack(pointer, out.n_executors))

    def per_task(pointer: Any, dtype: type = np.int64) -> Column | None:
        if out.n_tasks == 0:
            return np.zeros(0, dtype)
        return None if pointer == ffi.NULL else np.frombuffer(ffi.buffer(pointer, out.n_tasks * np.dtype(dtype).itemsize), dtype).copy()

    return SimResult(
        out.total_cycles, out.n_tasks, out.n_executors, out.critical_path, out.work, out.window_stalls, out.window_stall_cycles,
        out.window_high_water, out.window_task, tuple(out.stalls), tuple(out.stall_cycles), out.memory_cycles, per_executor(out.pool),
        per_executor(out.busy), per_executor(out.waiting), per_executor(out.late), per_executor(out.tasks_run), per_task(out.submit),
        per_task(out.start), per_task(out.end), per_task(out.ready), per_task(out.executor), per_task(out.held, np.uint8),
        per_task(out.held_by))


LookFirst: TypeAlias = Callable[[Recorder, Bindings], None]    # at a stream whose tasks have not run: may raise


class Engine:
    """An artifact with its record: runs, and remembers the last stream for runs with the same bindings."""

    def __init__(self, artifact: LoadedArtifact, plan: TaskPlan, threads: int | None, max_tasks: int = MAX_RECORDED_TASKS, *,
                 undefined: Mapping[int, Array] | None = None, wall_trace: bool = False) -> None:
        """`undefined`: what a sanitized run finds without contents, by tensor slot; None: runs are not sanitized."""
        self.plan = plan
        self.artifact = artifact
        self.runtime = artifact.runtime
        self.threads = threads or default_threads()
        self.max_tasks = max_tasks
        self._watch = None if undefined is None else Watch(self.runtime, plan, undefined)
        watched = self._watch is not None    # every conflict of a whole run, whatever the schedule infers and the window retires
        self.recorder = Recorder(self.runtime, plan.rules, infer=plan.infer or watched, prunes=not watched, max_tasks=max_tasks,
                                 poison=watched)
        self._fingerprint: tuple[object, ...] | None = None
        self._overflow: SimResult | None = None
        self._tensors: Any = None
        self._pool: Any = None
        self._cancel = self.runtime.ffi.new("int32_t *")     # this engine's runs, and no others that share the pool
        self._has_prints = has_prints(plan)
        self._waits = has_waits(plan)
        self._prints = Prints()
        self._wall = new_wall(self.runtime) if wall_trace else self.runtime.ffi.NULL
        self.sanitized: Sanitized | None = None    # of the last run
        self.look_first: LookFirst | None = None

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Make the tasks (or reuse those of the last run, when nothing that they depend on has changed) and run them all.

        Raises: R101 for a task that failed, R105 for one that made a NaN or infinity (check_finite), R104 for a check that did not
        hold (no task has run then, unless it was waited for or the stream is longer than a record keeps: the error says so); R201, R202
        and R203 for what a sanitized run finds.
        """
        if self._watch is not None and order_seed == 0:
            order_seed = new_seed()
            print(f"sanitize: seed {order_seed:#x}; repeat with {replay_text(order_seed)}", file=sys.stderr)
        ffi, lib = self.runtime.ffi, self.runtime.lib
        may_reuse = not self._waits and self._watch is None      # what tasks compute stands in no fingerprint
        fingerprint = bindings.fingerprint(self.plan) if may_reuse else None
        reuse = fingerprint is not None and fingerprint == self._fingerprint and self._overflow is None
        self._fingerprint = None
        options = ffi.new("pto_run_options *")
        sim = None
        if not reuse:
            self._overflow = None
            self.recorder.generation += 1
            self._tensors = raw_bindings(self.runtime, self.plan, bindings)
            options.bindings = self._tensors[0]
            options.orchestrate = self.artifact.table.orchestrate
            if self.plan.rules.full_window is FullWindow.ABORT and not self._waits and self.look_first is None:
                self._rehearse(options)
            sim = ffi.NULL if self.plan.rules.calendar else new_sim(self.runtime, self.plan.rules, keep_trace=False)
            options.sim = sim
        options.kernels = self.artifact.table.kernels
        options.n_kernels = self.artifact.table.n_kernels
        options.execute.order_seed = order_seed
        options.execute.threads = self.threads
        options.execute.cancel = self._cancel
        options.execute.wall = self._wall
        options.execute.by_calendar = int(self.plan.rules.calendar)
        options.interruptible = threading.current_thread() is threading.main_thread()
        shortened = shortening() if self._has_prints else (0, 0)
        printed = new_prints(self.runtime, shortened) if self._has_prints else ffi.NULL
        options.execute.prints = printed
        if self._watch is not None:
            options.execute.sanitizer = self._watch.open(bindings, self._tensors[1])
        result = ffi.new("pto_execute_result *")
        self._cancel[0] = 0
        self._pool = _pool(self.runtime, self.threads)
        status = lib.PTO_OK if self.look_first is None or reuse else self._look(options, result, bindings)
        if status == lib.PTO_OK:
            status = lib.pto_run(self._pool, self.recorder.raw, options, result)
        if printed != ffi.NULL:
            self._prints = read_prints(self.runtime, printed, self.plan, shortened)
        if self._watch is not None:
            self.sanitized = self._watch.found(order_seed)
            print(*self.sanitized.warnings, sep="\n", end="\n" * bool(self.sanitized.warnings), file=sys.stderr)
        if status == lib.PTO_E_RACE and self._watch is not None:
            raise_all([with_seed(error, order_seed) for error in self._watch.races()])
        if status == lib.PTO_E_MISUSE and self._watch is not None:
            raise with_seed(self._watch.misuse(), order_seed)
        if status == lib.PTO_E_GUARD:
            raise bounds_error(self.plan, ffi, lib.pto_record_guard(self.recorder.raw), result.n_run)
        if status == lib.PTO_E_KERNEL:
            columns = self.recorder.columns()
            self._prints = until(self._prints, result.failed_task)
            failure = native_error(self.plan, columns, result)
            raise with_seed(failure, order_seed) if order_seed else failure
        if status == lib.PTO_E_CANCELLED:
            raise KeyboardInterrupt
        if status == lib.PTO_E_DEADLOCK:
            raise run_stuck_error(self.plan, self.recorder.stuck(), bindings)
        check_status(status, "the run")
        self._fingerprint = fingerprint
        columns_out = ffi.new("pto_columns *")
        lib.pto_record_columns(self.recorder.raw, columns_out)
        if columns_out.first_node > 0 and sim:
            self._overflow = finish_sim(self.runtime, sim)
        if self._waits and self.plan.rules.full_window is FullWindow.ABORT:
            self._refuse_full_window(lambda: self.simulate(keep_trace=False), result.n_run)

    def _rehearse(self, options: Any) -> None:
        """Simulate the stream before a kernel runs, where the window ends a run that does not fit.

        Raises: R106, and nothing has been touched.
        """
        ffi, lib = self.runtime.ffi, self.runtime.lib
        sim = new_sim(self.runtime, self.plan.rules, keep_trace=False)
        rehearsal = ffi.new("pto_run_options *", {"orchestrate": options.orchestrate, "bindings": options.bindings, "sim": sim})
        if lib.pto_run(ffi.NULL, self.recorder.raw, rehearsal, ffi.new("pto_execute_result *")) not in (lib.PTO_OK, lib.PTO_E_WINDOW):
            return      # the run itself finds the same, and says what it is
        raw = self.recorder.raw_columns()

        def simulate() -> None:
            if raw.first_node == 0:     # else it has been fed
                feed_columns(self.runtime, sim, raw)
            finish_sim(self.runtime, sim)
        self._refuse_full_window(simulate, 0)

    def _refuse_full_window(self, simulate: Callable[[], object], n_run: int) -> None:
        try:
            simulate()
        except WindowFull as full:
            raise window_error(self.plan, self.runtime, self.recorder.raw_columns(), full, n_run) from None

    @property
    def intermediate_bytes(self) -> int:
        """The most memory that tensors made in bodies took at a time in the last run."""
        return self.recorder.memory()

    def _look(self, options: Any, result: Any, bindings: Bindings) -> int:
        """Record the stream without running it and have it looked at; what is left to do is to run it."""
        ffi, lib = self.runtime.ffi, self.runtime.lib
        only = ffi.new("pto_run_options *", {"orchestrate": options.orchestrate, "bindings": options.bindings, "sim": options.sim})
        status: int = lib.pto_run(ffi.NULL, self.recorder.raw, only, result)
        if status == lib.PTO_OK and self.look_first is not None:
            self.look_first(self.recorder, bindings)
            if self._watch is None:
                options.orchestrate = ffi.NULL
        return status

    def cancel(self) -> None:
        """Ask a run in another thread to stop after its current tasks."""
        if self._pool is not None:
            self.runtime.lib.pto_pool_cancel_run(self._pool, self._cancel)

    def take_prints(self) -> Prints:
        """Return what the last run printed, once."""
        taken, self._prints = self._prints, Prints()
        return taken

    def wall_times(self) -> WallTimes:
        """Return when the tasks of the last run began and ended, of an engine with wall_trace."""
        return read_wall(self.runtime, self._wall)

    def simulate(self, *, keep_trace: bool) -> SimResult:
        """Return the simulated times of the last stream (without a trace when it was longer than a record keeps)."""
        if self._overflow is not None:
            return self._overflow
        return self.recorder.simulate(self.plan.rules, keep_trace=keep_trace)


def raw_bindings(runtime: Runtime, plan: TaskPlan, bindings: Bindings) -> tuple[Any, ...]:
    """Return a pto_bindings and what must stay alive with it."""
    ffi = runtime.ffi
    tensors = ffi.new("pto_tensor[]", max(1, len(bindings.arrays)))
    for tensor, array, group in zip(tensors, bindings.arrays, bindings.groups, strict=False):
        tensor.data = ffi.cast("char *", array.__array_interface__["data"][0])
        tensor.buffer, tensor.rank = group, array.ndim
        for dim in range(array.ndim):
            tensor.dim[dim] = array.shape[dim]
            tensor.stride[dim] = array.strides[dim] // array.itemsize
    slots = [_slot(value, is_float=is_float_symbol(symbol)) for symbol, value in zip(plan.symbols, bindings.symbols, strict=True)]
    symbols = ffi.new("int64_t[]", slots or [0])
    raw = ffi.new("pto_bindings *", {"tensors": tensors, "symbols": symbols, "n_tensors": len(bindings.arrays),
                                              "n_symbols": len(slots)})
    return raw, tensors, symbols, bindings.arrays


def _slot(value: int | float, *, is_float: bool) -> int:
    return int(np.float64(value).view(np.int64)) if is_float else int(value)


def slots_of(values: Sequence[int | float], floats: Sequence[bool]) -> list[int]:
    """Return values as 64-bit slots: floats as the bits of a double."""
    return [_slot(value, is_float=is_float) for value, is_float in zip(values, floats, strict=True)]


_making_pools = threading.Lock()


def _pool(runtime: Runtime, threads: int) -> Any:
    with _making_pools:
        return _pool_of(runtime, threads, os.getpid())


@lru_cache(maxsize=8)
def _pool_of(runtime: Runtime, threads: int, pid: int) -> Any:
    """One pool a thread count and process: threads do not survive a fork, so a child makes its own."""
    del pid
    raw = runtime.lib.pto_pool_new(threads)
    if raw == runtime.ffi.NULL:
        raise ThreadStartError("not all worker threads could be started", expected=f"{threads} threads, {threads - 1} of them new",
                               found="the system refuses one", help="compile with threads=1, set PTO_WSP_THREADS, or raise `ulimit -u`")
    return raw    # for the life of the process: its threads sleep when idle


def _check_sim(runtime: Runtime, sim: Any, status: int) -> None:
    if status == runtime.lib.PTO_E_WINDOW:
        out = runtime.ffi.new("pto_sim_result *")
        runtime.lib.pto_sim_finish(sim, out)
        raise WindowFull(out.window_task, out.window_high_water)
    if status == runtime.lib.PTO_E_DEADLOCK:
        raise SimulationStuck
    check_status(status, "simulation")


def check_status(status: int, what: str) -> None:
    """Raise what a status of the library stands for where no user's error does."""
    if status == 1:
        raise MemoryError(f"{what} ran out of memory")
    if status != 0:
        raise InternalError(f"{what} ended with status {status}")
