"""The simulated trace: when each task ran, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

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


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Tasks in submission order as columns: start, end and ready in cycles, executor, and a name each on demand."""

    start: np.ndarray[Any, Any]
    end: np.ndarray[Any, Any]
    ready: np.ndarray[Any, Any]
    executor: np.ndarray[Any, Any]
    kernel: np.ndarray[Any, Any]
    kernels: tuple[str, ...]
    names: Sequence[str]
    n_executors: int
    total_cycles: int

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
