"""The simulator of the runtime library: rules in, tasks fed, figures and times of each task out."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.plan.rules import ExecutionRules
from pto_wsp.runtime.failures.simulation import CyclesOverflow, WindowFull
from pto_wsp.runtime.native.status import check_status, interruptible
from pto_wsp.values import dataclass

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
class TaskTimes:
    """What became of each task, as columns; times are cycles.

    `complete`: when others saw that it had ended. `held`: a `Held`; `held_by`: a node or task of the stream, -1 for none.
    """

    submit: Column
    ready: Column
    start: Column
    end: Column
    complete: Column
    executor: Column
    held: Column
    held_by: Column


@dataclass(frozen=True, slots=True, eq=False)
class SimResult:
    """What the simulator found. Times are cycles.

    Per executor: its pool, cycles busy, waiting for a dependency and late, tasks run. stalls and stall_cycles are by PTO_STALL_: how often
    and how long a stream stood at a mark. `memory_cycles`: that tasks took longer because of others in memory. `tasks`: None where no trace
    is kept.
    """

    total_cycles: int
    n_tasks: int
    n_executors: int
    critical_path: int
    work: int
    window_stalls: int
    window_stall_cycles: int
    window_high_water: int
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
    """Not all tasks can run under the rules: under those of a calendar that does not fit them."""


def new_sim(runtime: Runtime, rules: ExecutionRules, *, keep_trace: bool) -> Any:
    """Return a simulator that has seen no task yet."""
    ffi = runtime.ffi
    pools, starts = ffi.new("int64_t[]", list(rules.pool_size or (0,))), ffi.new("int64_t[]", list(rules.starts))
    options = ffi.new("pto_sim_options *", {**rules.sim_options(), "pool_size": pools, "n_pools": len(rules.pool_size or ()),
                                            "starts": starts, "keep_trace": int(keep_trace), "interruptible": interruptible()})
    raw = runtime.lib.pto_sim_new(options)
    if raw == runtime.ffi.NULL:
        raise MemoryError("no memory for the simulator")
    return runtime.ffi.gc(raw, runtime.lib.pto_sim_free)


def feed_columns(runtime: Runtime, sim: Any, columns: Any) -> None:
    """Give a simulator tasks: a pto_columns that follows what it has been fed.

    Raises: SimulationStuck, SimulationEnded, KeyboardInterrupt.
    """
    _check_sim(runtime, sim, runtime.lib.pto_sim_feed_columns(sim, columns))


def finish_sim(runtime: Runtime, sim: Any) -> SimResult:
    """Drain a simulator and return what it found.

    Raises: SimulationStuck, SimulationEnded, KeyboardInterrupt.
    """
    ffi = runtime.ffi
    out = ffi.new("pto_sim_result *")
    _check_sim(runtime, sim, runtime.lib.pto_sim_finish(sim, out))

    def per_executor(pointer: Any) -> tuple[int, ...]:
        return tuple(ffi.unpack(pointer, out.n_executors))

    def per_task(pointer: Any, dtype: type = np.int64) -> Column:
        if out.n_tasks == 0:
            return np.zeros(0, dtype)
        return np.frombuffer(ffi.buffer(pointer, out.n_tasks * np.dtype(dtype).itemsize), dtype).copy()

    tasks = None
    if out.n_tasks == 0 or out.submit != ffi.NULL:
        tasks = TaskTimes(per_task(out.submit), per_task(out.ready), per_task(out.start), per_task(out.end), per_task(out.complete),
                          per_task(out.executor), per_task(out.held, np.uint8), per_task(out.held_by))

    return SimResult(
        out.total_cycles, out.n_tasks, out.n_executors, out.critical_path, out.work, out.window_stalls, out.window_stall_cycles,
        out.window_high_water, tuple(out.stalls), tuple(out.stall_cycles), out.memory_cycles, per_executor(out.pool),
        per_executor(out.busy), per_executor(out.waiting), per_executor(out.late), per_executor(out.tasks_run), tasks)


def _check_sim(runtime: Runtime, sim: Any, status: int) -> None:
    if status == runtime.lib.PTO_E_WINDOW:
        out = runtime.ffi.new("pto_sim_result *")
        runtime.lib.pto_sim_finish(sim, out)
        raise WindowFull(out.failed_task, out.window_high_water)
    if status == runtime.lib.PTO_E_OVERFLOW:
        out = runtime.ffi.new("pto_sim_result *")
        runtime.lib.pto_sim_finish(sim, out)
        raise CyclesOverflow(out.failed_task)
    if status == runtime.lib.PTO_E_DEADLOCK:
        raise SimulationStuck
    check_status(status, "simulation")
