"""The simulated trace: when each task ran, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp.errors import ArgumentKindError
from pto_wsp.report.perfetto import write_perfetto
from pto_wsp.source import here
from pto_wsp.values import dataclass


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
    """Whose an executor is: its pool, and the AICPU that has it."""

    pool: int
    aicpu: int


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """By task: when it was submitted, what delayed it last (PTO_HELD_ in words), and the task whose end did, -1 for none."""

    submit: np.ndarray[Any, Any]
    held: Sequence[str]
    task: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Tasks in submission order as columns: start, end and ready in cycles, executor, and a name each on demand.

    `homes`: by executor. `clock_ghz`: of the arch, None where it has none.
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
        """What times are in."""
        return "cycles"

    @property
    def place(self) -> str:
        """What tasks run on."""
        return "executor"

    def about(self) -> dict[str, object]:
        """Return what the file for Perfetto says of the whole trace."""
        clock = f"{self.clock_ghz} GHz" if self.clock_ghz else "none: a cycle is shown as a microsecond"
        return {"clock": clock, "total_cycles": self.total_cycles}

    def to_perfetto(self, path: str | Path) -> Path:
        """Write the trace as Chrome JSON, which ui.perfetto.dev opens, and return where it is.

        A process is an AICPU, a thread an executor, arrows show what tasks waited for last, counters how many were submitted and how many
        ready. Times are those of the arch's clock; without one a cycle is a microsecond.

        Raises: C108 for a file that cannot be written, T205 for what is no path.
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
