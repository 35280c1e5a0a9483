"""The figures of the parts of a run: executors, pools, windows, stalls, channels, control processors; and what a run has of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, overload

import numpy as np

from pto_wsp.ir.execution_rules import WindowUnit
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """One executor in simulated time, in cycles; busy + waiting + late + idle is the makespan.

    `waiting`: idle while a task of its own waited for others. `late`: idle while a ready task of its pool was on another executor's list,
    or while its AICPU was busy with other tasks. `name`: of a mesh, `rank 0` or `rank 0 link to rank 1`.
    """

    busy: int
    waiting: int
    idle: int
    tasks: int
    late: int = 0
    pool: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class PoolStats:
    """The executors of one pool: their number, and the cycles of all their tasks without contention for memory."""

    pool: int
    executors: int
    work: int


@dataclass(frozen=True, slots=True)
class WindowStats:
    """A window, in its unit: stalls of streams waiting for room, their cycles, and the largest occupancy of one stream.

    For a window that is only counted (BENCHMARK): the times that a task found no room.
    """

    size: int
    stalls: int
    stall_cycles: int
    high_water: int
    unit: WindowUnit = WindowUnit.TASKS


@dataclass(frozen=True, slots=True)
class StallStats:
    """One reason for stalls of processes: number and cycles, summed over processes."""

    reason: str
    count: int
    cycles: int


@dataclass(frozen=True, slots=True)
class ChannelStats:
    """A channel: its depth, the tokens sent through it, and its largest occupancy."""

    name: str
    depth: int
    tokens: int
    high_water: int


@dataclass(frozen=True, slots=True)
class ControlStats:
    """The cost of a task on the control processors in cycles, and their number.

    `in_a_row`: the number of tasks that the busiest stream submits.
    """

    submit: int = 0
    dispatch: int = 0
    retire: int = 0
    aicpus: int = 1
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class ResourceStats:
    """A bounded resource, by the name of its stall: size ("" if unbounded), largest use, stalls and their cycles."""

    name: str
    size: str
    high_water: str
    stalls: int
    cycles: int


@dataclass(frozen=True, slots=True)
class KernelStats:
    """The tasks of one kernel: their number, the cycles that they ran, and the cycles from submission to start.

    `wall_ns`: how long they ran on this machine, in ns; None for a run that did not look at the clock.
    """

    kernel: str
    tasks: int
    cycles: int
    waiting: int
    wall_ns: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class KernelTable(Sequence[KernelStats]):
    """The kernels of a run, the one with most cycles first."""

    rows: tuple[KernelStats, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> KernelStats: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[KernelStats, ...]: ...

    def __getitem__(self, index: int | slice) -> KernelStats | tuple[KernelStats, ...]:
        return self.rows[index]

    def columns(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the kernels as columns: `pandas.DataFrame(stats.kernels.columns())`.

        `kernel`, `tasks`, `cycles`, `waiting`; `wall_ns`, if it was measured.
        """
        numbers = ("tasks", "cycles", "waiting", *(("wall_ns",) if self.is_measured else ()))
        return {"kernel": np.array([row.kernel for row in self.rows], object),
                **{name: np.array([getattr(row, name) for row in self.rows], np.int64) for name in numbers}}

    @property
    def is_measured(self) -> bool:
        """Whether the run looked at the clock."""
        return any(row.wall_ns is not None for row in self.rows)

    def __str__(self) -> str:
        width = max([6, *(len(row.kernel) for row in self.rows)])
        wall = f"{'wall ns':>16}" * self.is_measured
        lines = [f"{'kernel':<{width}}{'tasks':>10}{'cycles':>16}{'waiting':>16}{wall}"]
        for row in self.rows:
            measured = "" if row.wall_ns is None else f"{row.wall_ns:>16}"
            lines.append(f"{row.kernel:<{width}}{row.tasks:>10}{row.cycles:>16}{row.waiting:>16}{measured}")
        return "\n".join(lines)

    __repr__ = __str__


class RunFigures(Protocol):
    """The figures that tell what bounds a run; the attributes are documented at `Stats`."""

    @property
    def task_count(self) -> int:
        """The number of tasks."""
        ...

    @property
    def total_cycles(self) -> int:
        """The makespan in cycles."""
        ...

    @property
    def critical_path(self) -> int:
        """The longest chain of dependent tasks, in cycles."""
        ...

    @property
    def lower_bound(self) -> int:
        """The makespan in cycles that no schedule on these executors can beat."""
        ...

    @property
    def memory_bound(self) -> int:
        """The cycles in which the shared memory moves all bytes; 0 if it is unbounded."""
        ...

    @property
    def memory_share(self) -> float:
        """The cycles that tasks lost to other tasks in memory, as a fraction of the cycles that tasks take alone."""
        ...

    @property
    def executors(self) -> tuple[ExecutorStats, ...]:
        """Each executor."""
        ...

    @property
    def shared_pools(self) -> tuple[PoolStats, ...]:
        """The pools; a single pool of all executors if the run has no pools."""
        ...

    @property
    def windows(self) -> tuple[WindowStats, ...]:
        """All windows, by unit."""
        ...

    @property
    def stalls(self) -> tuple[StallStats, ...]:
        """The reasons for stalls that occurred."""
        ...

    @property
    def control(self) -> ControlStats:
        """The cost of a task on the control processors."""
        ...

    @property
    def n_cores(self) -> int:
        """The cores of the machine; 0 if it has as many as a schedule names."""
        ...

    @property
    def cores_used(self) -> int:
        """The number of executors that ran a task."""
        ...
