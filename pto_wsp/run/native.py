"""Run an artifact natively: orchestrate into a record, execute the record on threads, keep it for later runs and for the simulator.

A stream is reused if its fingerprint (everything the orchestrator reads) is unchanged. A stream longer than a record keeps is executed and
simulated in chunks; the record then has its last chunk only.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pto_wsp import doors
from pto_wsp.artifact.build import LoadedArtifact, Runtime
from pto_wsp.errors import BindingError, ThreadStartError, raise_all
from pto_wsp.ir.plan import TaskPlan, is_float_symbol
from pto_wsp.ir.scalar import wrap_i64
from pto_wsp.ir.waits import has_waits
from pto_wsp.run.bound import Array, Bindings
from pto_wsp.run.failures import SimulationEnded, bounds_error, clash_error, ended_error, run_stuck_error, with_seed
from pto_wsp.run.prints import Prints, has_prints, new_prints, read_prints, shortening, until
from pto_wsp.run.record import WallTimes, new_wall, read_wall
from pto_wsp.run.simulator import MAX_RECORDED_TASKS, Recorder, SimResult, check_status, feed_columns, finish_sim, interruptible, new_sim

if TYPE_CHECKING:
    from pto_wsp.run.sanitize import Sanitized


def default_threads() -> int:
    """Return PTO_WSP_THREADS, otherwise the number of CPUs that this process may use.

    Raises: R102 if the variable is not an integer >= 1.
    """
    text = os.environ.get("PTO_WSP_THREADS")
    if text is None:
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if not text.isdecimal() or int(text) < 1:
        raise BindingError("PTO_WSP_THREADS is no number of threads", expected="a whole number >= 1", found=repr(text))
    return int(text)


LookFirst: TypeAlias = Callable[[Recorder, Bindings], None]    # inspects a stream before its tasks run; may raise


class Engine:
    """Runs an artifact, and keeps the last stream for runs with the same bindings."""

    oracle: Callable[[bool], Any] | None = None     # makes what verify() compares with, if it is not an Interpreter of the plan

    def __init__(self, artifact: LoadedArtifact, plan: TaskPlan, threads: int | None, max_tasks: int = MAX_RECORDED_TASKS, *,
                 undefined: Mapping[int, Array] | None = None, wall_trace: bool = False, prints: bool | None = None) -> None:
        """Create an engine.

        `undefined`: by tensor slot, memory that starts without contents, for sanitized runs; None: runs are not sanitized.
        `prints`: whether a kernel prints; None: the plan's kernels say.
        """
        self.plan = plan
        self.artifact = artifact
        self.runtime = artifact.runtime
        self.threads = threads or default_threads()
        self.max_tasks = max_tasks
        self._watch = None if undefined is None else doors.watch()(self.runtime, plan, undefined)
        watched = self._watch is not None    # record all conflicts, whatever the schedule infers and the window retires
        self.recorder = Recorder(self.runtime, plan.rules, infer=plan.infer or watched, prunes=not watched, max_tasks=max_tasks,
                                 poison=watched, written_by=artifact)
        self._fingerprint: tuple[object, ...] | None = None
        self._runs = False
        self._result: Any = None     # of the run that goes on, or the last one
        self._overflow: SimResult | None = None
        self._tensors: Any = None
        self._pool: Any = None
        self._cancel = self.runtime.ffi.new("int32_t *")     # cancels this engine's runs alone, not others on the pool
        self._has_prints = has_prints(plan) if prints is None else prints
        self._waits = has_waits(plan)
        self._prints = Prints()
        self._wall = new_wall(self.runtime) if wall_trace else self.runtime.ffi.NULL
        self._ranks: Any = self.runtime.ffi.NULL     # of one rank's part of the plan: pto_ranks
        self.sanitized: Sanitized | None = None    # the last run's figures
        self.look_first: LookFirst | None = None

    @property
    def watches_clock(self) -> bool:
        """Whether runs keep when tasks began and ended by the clock."""
        return bool(self._wall != self.runtime.ffi.NULL)

    def apart(self) -> Engine:
        """Return an engine of the same artifact with its own record, whose runs do not affect this engine."""
        engine = Engine(self.artifact, self.plan, self.threads, self.max_tasks, prints=self._has_prints)
        engine.look_first = self.look_first
        return engine

    def let_go(self) -> None:
        """Drop the arrays of the last run, which may be many bytes; its record stays, for a run on arrays at the same places."""
        self._tensors = None if self._tensors is None else self._tensors[:3]

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Enumerate the tasks and run them; if no input of the enumeration has changed, reuse the tasks of the last run.

        Raises: R101 for a failed task, R105 for a task that computed NaN or infinity (check_finite); R104 for a failed check and W205 for a
        task with overlapping outputs (then no task has run, except before a wait or in a stream longer than a record; the error of a check
        says so); R201, R202 and R203 for what a sanitized run finds.
        """
        if self._watch is not None and order_seed == 0:
            order_seed = self._watch.new_seed()
        ffi, lib = self.runtime.ffi, self.runtime.lib
        may_reuse = not self._waits and self._watch is None      # a fingerprint does not cover what tasks compute
        fingerprint = bindings.fingerprint(self.plan) if may_reuse else None
        reuse = fingerprint is not None and fingerprint == self._fingerprint and self._overflow is None
        self._fingerprint = None
        options = ffi.new("pto_run_options *")
        sim = ffi.NULL if reuse else self._begin_stream(options, bindings)
        options.kernels = self.artifact.table.kernels
        options.n_kernels = self.artifact.table.n_kernels
        options.execute = {**self.plan.rules.execute_options(), "order_seed": order_seed, "threads": self.threads, "cancel": self._cancel,
                           "wall": self._wall, "ranks": self._ranks}
        options.interruptible = interruptible()
        shortened = shortening() if self._has_prints else (0, 0)
        printed = new_prints(self.runtime, shortened) if self._has_prints else ffi.NULL
        options.execute.prints = printed
        if self._watch is not None:
            options.execute.sanitizer = self._watch.open(bindings, self._tensors[1])
        result = self._result = ffi.new("pto_execute_result *")
        self._pool = _pool(self.runtime, self.threads)
        status = lib.PTO_OK if self.look_first is None or reuse else self._look(options, result, bindings)
        if status == lib.PTO_OK:
            self._runs = True
            try:
                status = lib.pto_run(self._pool, self.recorder.raw, options, result)
            finally:
                self._runs = False
        if printed != ffi.NULL:
            self._prints = read_prints(self.runtime, printed, self.plan, shortened)
        if self._watch is not None:
            self.sanitized = self._watch.found(order_seed)
            print(*self.sanitized.warnings, sep="\n", end="\n" * bool(self.sanitized.warnings), file=sys.stderr)
        self._raise_failure(status, result, sim, order_seed, bindings)
        self._fingerprint = fingerprint
        if sim and self.recorder.raw_columns().first_node > 0:
            self._overflow = self._told(lambda: finish_sim(self.runtime, sim), result.n_run)
        elif self._waits and self.plan.rules.may_abort:
            self._told(lambda: self.recorder.simulate(self.plan.rules, keep_trace=False), result.n_run)

    def _begin_stream(self, options: Any, bindings: Bindings) -> Any:
        """Set a run's options to make its tasks anew; return the simulator for tasks beyond the record's capacity, or NULL.

        Raises: R106 for a task that does not fit an aborting window.
        """
        self._overflow = None
        self.recorder.generation += 1
        self._tensors = raw_bindings(self.runtime, self.plan, bindings)
        options.bindings = self._tensors[0]
        options.orchestrate = self.artifact.table.orchestrate
        if self.plan.rules.may_abort and not self._waits and self.look_first is None:
            self._rehearse(options)
        sim = self.runtime.ffi.NULL if self.plan.rules.calendar else new_sim(self.runtime, self.plan.rules, keep_trace=False)
        options.sim = sim
        return sim

    def _raise_failure(self, status: int, result: Any, sim: Any, order_seed: int, bindings: Bindings) -> None:
        """Raise the error of a run's status, if it is not PTO_OK."""
        lib = self.runtime.lib
        if status == lib.PTO_E_RACE and self._watch is not None:
            raise_all([with_seed(error, order_seed) for error in self._watch.races()])
        if status == lib.PTO_E_MISUSE and self._watch is not None:
            raise with_seed(self._watch.misuse(), order_seed)
        if status == lib.PTO_E_GUARD:
            raise bounds_error(self.plan, self.runtime.ffi, lib.pto_record_guard(self.recorder.raw), result.n_run)
        if status == lib.PTO_E_OUTPUTS:
            raise clash_error(self.plan, lib.pto_record_clash(self.recorder.raw))
        if status == lib.PTO_E_KERNEL:
            columns = self.recorder.columns()
            self._prints = until(self._prints, result.failed_task)
            failure = doors.native_error(self.plan, columns, result)
            raise with_seed(failure, order_seed) if order_seed else failure
        if status == lib.PTO_E_DEADLOCK:
            raise run_stuck_error(self.plan, self.recorder.stuck(), bindings)
        if status in (lib.PTO_E_WINDOW, lib.PTO_E_OVERFLOW):      # reported by the simulator while it was fed
            self._told(lambda: finish_sim(self.runtime, sim), result.n_run)
        check_status(status, "the run")

    def _rehearse(self, options: Any) -> None:
        """Simulate the stream before any kernel runs, for a window that aborts the run.

        Raises: R106 for a task that does not fit, with all arrays untouched.
        """
        lib = self.runtime.lib
        sim = new_sim(self.runtime, self.plan.rules, keep_trace=False)
        status = self._only_record(options, sim, self.runtime.ffi.new("pto_execute_result *"))
        if status == lib.PTO_E_CANCELLED:
            raise KeyboardInterrupt
        if status not in (lib.PTO_OK, lib.PTO_E_WINDOW):
            return      # the run itself reports the same status
        raw = self.recorder.raw_columns()

        def simulate() -> SimResult:
            if raw.first_node == 0:     # otherwise the simulator was fed in chunks
                feed_columns(self.runtime, sim, raw)
            return finish_sim(self.runtime, sim)
        self._told(simulate, 0)

    def _told(self, simulate: Callable[[], SimResult], n_run: int) -> SimResult:
        """Return the result of a simulation. `n_run`: the number of tasks run so far, for the error.

        Raises: R106 if a task does not fit the window, R111 if cycles exceed 64 bits.
        """
        try:
            return simulate()
        except SimulationEnded as ended:
            raise ended_error(self.plan, self.recorder.raw_columns(), ended, n_run) from None

    def record_only(self, bindings: Bindings) -> None:
        """Make the tasks of a run without running one, to be looked at.

        Raises: R104, R106 and W205 as `run` does.
        """
        options, result = self.runtime.ffi.new("pto_run_options *"), self.runtime.ffi.new("pto_execute_result *")
        sim = self._begin_stream(options, bindings)
        self._raise_failure(self._only_record(options, sim, result), result, sim, 0, bindings)
        if sim and self.recorder.raw_columns().first_node > 0:
            self._overflow = self._told(lambda: finish_sim(self.runtime, sim), 0)

    def to_look_at(self, bindings: Bindings) -> Engine:
        """Return the engine whose record shows the last run, which was one of these bindings."""
        del bindings
        return self

    @property
    def intermediate_bytes(self) -> int:
        """The peak memory in bytes of tensors allocated in bodies in the last run."""
        return self.recorder.memory()

    def _look(self, options: Any, result: Any, bindings: Bindings) -> int:
        """Record the stream without running it and call `look_first` on it; the run then skips orchestration."""
        status = self._only_record(options, options.sim, result)
        if status == self.runtime.lib.PTO_OK and self.look_first is not None:
            self.look_first(self.recorder, bindings)
            if self._watch is None:
                options.orchestrate = self.runtime.ffi.NULL
        return status

    def _only_record(self, options: Any, sim: Any, result: Any) -> int:
        """Orchestrate into the record without running a kernel; return the status. `sim` is fed the chunks of a long stream."""
        only = self.runtime.ffi.new("pto_run_options *", {"orchestrate": options.orchestrate, "bindings": options.bindings, "sim": sim,
                                                          "interruptible": interruptible(),
                                                          "execute": {"cancel": self._cancel, "ranks": self._ranks}})
        status: int = self.runtime.lib.pto_run(self.runtime.ffi.NULL, self.recorder.raw, only, result)
        return status

    def begin(self) -> None:
        """Clear an earlier cancel() before the next run starts."""
        self._cancel[0] = 0

    def cancel(self) -> None:
        """Ask a run in another thread, running or about to start, to stop; tasks may end early."""
        self._cancel[0] = 1
        if self._pool is not None:
            self.runtime.lib.pto_pool_cancel_run(self._pool, self._cancel)

    def n_run(self) -> int:
        """Return the number of tasks completed in the run that goes on, or in the last one; any thread may ask."""
        if self._result is None:
            return 0
        return int(self._result.n_run) + (int(self.runtime.lib.pto_pool_n_run(self._pool, self._cancel)) if self._runs else 0)

    def n_made(self) -> int:
        """Return the number of tasks made so far."""
        return int(self.recorder.raw_columns().total_tasks)

    def take_prints(self) -> Prints:
        """Return what the last run printed, once."""
        prints, self._prints = self._prints, Prints()
        return prints

    def wall_times(self) -> WallTimes:
        """Return the wall-clock times of the last run's tasks; the engine must have been created with wall_trace."""
        return read_wall(self.runtime, self._wall)

    def simulate(self, *, keep_trace: bool) -> SimResult:
        """Return the simulated times of the last stream, without a trace if it was longer than a record.

        Raises: R106 if a task does not fit the window, R111 if cycles exceed 64 bits.
        """
        if self._overflow is not None:
            return self._overflow
        return self._told(lambda: self.recorder.simulate(self.plan.rules, keep_trace=keep_trace), 0)


def raw_bindings(runtime: Runtime, plan: TaskPlan, bindings: Bindings) -> tuple[Any, ...]:
    """Return a pto_bindings and the buffers that must outlive its use."""
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
    return int(np.float64(value).view(np.int64)) if is_float else wrap_i64(int(value))


def slots_of(values: Sequence[int | float], floats: Sequence[bool]) -> list[int]:
    """Return values as 64-bit slots; floats are the bits of a double."""
    return [_slot(value, is_float=is_float) for value, is_float in zip(values, floats, strict=True)]


_making_pools = threading.Lock()


def _pool(runtime: Runtime, threads: int) -> Any:
    with _making_pools:
        return pool_of(runtime, threads, os.getpid())


@lru_cache(maxsize=8)
def pool_of(runtime: Runtime, threads: int, pid: int) -> Any:
    """One pool a thread count and process: threads do not survive a fork, so a child makes its own."""
    del pid
    raw = runtime.lib.pto_pool_new(threads)
    if raw == runtime.ffi.NULL:
        raise ThreadStartError("not all worker threads could be started", expected=f"{threads} threads, {threads - 1} of them new",
                               found="the system refuses one", help="compile with threads=1, set PTO_WSP_THREADS, or raise `ulimit -u`")
    return raw    # lives as long as the process; idle threads sleep
