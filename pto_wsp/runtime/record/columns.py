"""A record of the task stream as NumPy columns: tasks in submission order, and the edges between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.values import dataclass


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
    task_position: np.ndarray[Any, Any] | None = None      # where a calendar gives one
    task_bytes: np.ndarray[Any, Any] | None = None         # to and from GM, where the arch bounds them

    def index_of(self, task: int) -> tuple[int, ...]:
        """Return the indices of the task at position `task`."""
        return tuple(int(i) for i in self.index[self.index_begin[task]:self.index_begin[task + 1]])


@dataclass(frozen=True, slots=True)
class RecordedArg:
    """A strided box in memory: its alias group, the address of its first element, extents and strides in elements."""

    buffer: int
    address: int
    extent: tuple[int, int]
    stride: tuple[int, int]
    elem_bytes: int


def read_columns(runtime: Runtime, record: Any) -> RecordColumns:
    """Return a record's columns, copied out of the library's memory."""
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
