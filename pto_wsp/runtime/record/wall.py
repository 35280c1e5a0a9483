"""When the tasks of a native run began and ended by the clock, as the runtime library kept it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.values import dataclass

_ROW = np.dtype([("start", np.int64), ("end", np.int64), ("thread", np.int32), ("reserved", np.int32)])    # pto_wall_row


@dataclass(frozen=True, slots=True, eq=False)
class WallTimes:
    """By task: start and end in ns of the monotonic clock, and the thread (-1: not run); what keeping them took a task, in ns.

    `is_cut`: the stream was longer than a record keeps, so there are none.
    """

    start: np.ndarray[Any, Any]
    end: np.ndarray[Any, Any]
    thread: np.ndarray[Any, Any]
    row_ns: float
    is_cut: bool


def new_wall(runtime: Runtime) -> Any:
    """Return a pto_wall that has seen no run."""
    raw = runtime.lib.pto_wall_new()
    if raw == runtime.ffi.NULL:
        raise MemoryError("no memory for the wall-clock trace")
    return runtime.ffi.gc(raw, runtime.lib.pto_wall_free)


def read_wall(runtime: Runtime, wall: Any) -> WallTimes:
    """Return a copy of what a pto_wall holds."""
    ffi = runtime.ffi
    view = ffi.new("pto_wall_view *")
    runtime.lib.pto_wall_read(wall, view)
    rows = np.frombuffer(ffi.buffer(view.rows, view.n * _ROW.itemsize), _ROW) if view.n else np.zeros(0, _ROW)
    return WallTimes(rows["start"].copy(), rows["end"].copy(), rows["thread"].copy(), view.row_ns, bool(view.is_cut))
