"""Hold a record of the task stream as NumPy columns: tasks in submission order, joins and marks, edges, wall-clock times.

Enumerations have the numbers of pto_abi.h.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]


def before_in_group(group: Array, order: Array | None = None, *, none: int = -1) -> Array:
    """Return, for each position, the previous position of the same group; -1 for the first one and for the group `none`.

    `order`: sort key within a group, ties by position; without it, positions are in order.

    >>> before_in_group(np.array([7, 4, 7, -1, 4, 7]))
    array([-1, -1,  0, -1,  1,  2])
    """
    by_group = np.argsort(group, kind="stable") if order is None else np.lexsort((order, group))
    sorted_group = group[by_group]
    same = (sorted_group[1:] == sorted_group[:-1]) & (sorted_group[1:] != none)
    before = np.full(len(group), -1, np.int64)
    before[by_group[1:][same]] = by_group[:-1][same]
    return before


class NodeKind(enum.IntEnum):
    """PTO_NODE_: the kind of a node of a record."""

    TASK = 0
    JOIN = 1
    MARK = 2


class MarkFlag(enum.IntFlag):
    """PTO_MARK_: the effect of a mark on its stream."""

    BLOCKS = 1    # the stream submits nothing before the mark completes
    NOW = 2       # its predecessors have run when the call returns, because memory is read next
    RESTS = 4     # the stream submits nothing for now: simulated time advances without it


class EdgeReason(enum.IntFlag):
    """PTO_EDGE_: why a node waits for another."""

    RAW = 1
    WAR = 2
    WAW = 4
    ORDER = 8
    AFTER = 16
    CHANNEL = 32
    EVENT = 64
    READ = 128
    LANE = 256


class Stall(enum.IntEnum):
    """PTO_STALL_: what a stream blocked at a mark waits for."""

    NONE = 0
    CHANNEL_EMPTY = 1
    CHANNEL_FULL = 2
    READ = 3
    EVENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """Tasks, nodes and marks as columns. Predecessors of node n are edge_src[pred_begin[n]:pred_begin[n + 1]]."""

    n_tasks: int
    first_task: int
    first_node: int
    total_tasks: int
    node_kind: np.ndarray[Any, Any]
    node_task: np.ndarray[Any, Any]
    pred_begin: np.ndarray[Any, Any]
    edge_src: np.ndarray[Any, Any]
    edge_why: np.ndarray[Any, Any]
    edge_arg: np.ndarray[Any, Any]
    task_node: np.ndarray[Any, Any]
    task_kernel: np.ndarray[Any, Any]
    task_site: np.ndarray[Any, Any]
    task_worker: np.ndarray[Any, Any]
    task_cost: np.ndarray[Any, Any]
    task_stream: np.ndarray[Any, Any]
    index_begin: np.ndarray[Any, Any]
    index: np.ndarray[Any, Any]
    mark_node: np.ndarray[Any, Any]
    mark_delay: np.ndarray[Any, Any]
    mark_stream: np.ndarray[Any, Any]
    mark_site: np.ndarray[Any, Any]
    mark_flags: np.ndarray[Any, Any]
    mark_stall: np.ndarray[Any, Any]
    task_position: np.ndarray[Any, Any] | None = None      # only with a calendar
    task_bytes: np.ndarray[Any, Any] | None = None         # bytes to and from GM, only if the arch bounds their rate

    def index_of(self, task: int) -> tuple[int, ...]:
        """Return the indices of the task at position `task`."""
        return tuple(int(i) for i in self.index[self.index_begin[task]:self.index_begin[task + 1]])


@dataclass(frozen=True, slots=True)
class RecordedArg:
    """A strided box in memory: alias group, address of the first element, extents and strides in elements."""

    buffer: int
    address: int
    extent: tuple[int, int]
    stride: tuple[int, int]
    elem_bytes: int


def read_columns(runtime: Runtime, record: Any) -> RecordColumns:
    """Return a copy of a record's columns."""
    ffi = runtime.ffi
    raw = ffi.new("pto_columns *")
    runtime.lib.pto_record_columns(record, raw)

    def column(pointer: Any, count: int, dtype: type) -> np.ndarray[Any, Any]:
        size = np.dtype(dtype).itemsize * count
        return np.frombuffer(ffi.buffer(pointer, size), dtype).copy() if count else np.zeros(0, dtype)

    n_tasks, n_nodes, n_edges, n_marks = raw.n_tasks, raw.n_nodes, raw.n_edges, raw.n_marks
    index_begin = column(raw.index_begin, n_tasks + 1 if n_tasks else 0, np.int64)
    return RecordColumns(
        n_tasks, raw.first_task, raw.first_node, raw.total_tasks,
        column(raw.node_kind, n_nodes, np.uint8), column(raw.node_task, n_nodes, np.int64),
        column(raw.pred_begin, n_nodes + 1 if n_nodes else 0, np.int64), column(raw.edge_src, n_edges, np.int64),
        column(raw.edge_why, n_edges, np.uint16), column(raw.edge_arg, n_edges, np.int32),
        column(raw.task_node, n_tasks, np.int64), column(raw.task_kernel, n_tasks, np.int32),
        column(raw.task_site, n_tasks, np.int32), column(raw.task_worker, n_tasks, np.int64),
        column(raw.task_cost, n_tasks, np.int64), column(raw.task_stream, n_tasks, np.int32), index_begin,
        column(raw.index, int(index_begin[-1]) if n_tasks else 0, np.int64),
        column(raw.mark_node, n_marks, np.int64), column(raw.mark_delay, n_marks, np.int64),
        column(raw.mark_stream, n_marks, np.int32), column(raw.mark_site, n_marks, np.int32),
        column(raw.mark_flags, n_marks, np.uint8), column(raw.mark_stall, n_marks, np.uint8),
        column(raw.task_position, n_tasks, np.int64) if raw.task_position else None,
        column(raw.task_bytes, n_tasks, np.int64) if raw.task_bytes else None)


_ROW = np.dtype([("start", np.int64), ("end", np.int64), ("thread", np.int32), ("reserved", np.int32)])    # pto_wall_row


@dataclass(frozen=True, slots=True, eq=False)
class WallTimes:
    """By task: start and end in ns of the monotonic clock, and the thread (-1: not run). `row_ns`: the cost of recording a task, in ns.

    `is_cut`: the stream was longer than a record, so there are no times.
    """

    start: np.ndarray[Any, Any]
    end: np.ndarray[Any, Any]
    thread: np.ndarray[Any, Any]
    row_ns: float
    is_cut: bool


def new_wall(runtime: Runtime) -> Any:
    """Return an empty pto_wall."""
    raw = runtime.lib.pto_wall_new()
    if raw == runtime.ffi.NULL:
        raise MemoryError("no memory for the wall-clock trace")
    return runtime.ffi.gc(raw, runtime.lib.pto_wall_free)


def read_wall(runtime: Runtime, wall: Any) -> WallTimes:
    """Return a copy of a pto_wall's contents."""
    ffi = runtime.ffi
    view = ffi.new("pto_wall_view *")
    runtime.lib.pto_wall_read(wall, view)
    rows = np.frombuffer(ffi.buffer(view.rows, view.n * _ROW.itemsize), _ROW) if view.n else np.zeros(0, _ROW)
    return WallTimes(rows["start"].copy(), rows["end"].copy(), rows["thread"].copy(), view.row_ns, bool(view.is_cut))
