"""The tasks of a record as columns that expressions of a plan are evaluated over: views of the record's memory, no copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.plan.model import Pipeline, Submit, TaskPlan
from pto_wsp.plan.walk import items_in, items_of, submits
from pto_wsp.retime.evaluate import Column, constant
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.types import scalar as s


class RecordedTasks:
    """A record's tasks. `raw` is its pto_columns: valid until the record changes."""

    def __init__(self, runtime: Runtime, raw: Any, plan: TaskPlan, bindings: Bindings) -> None:
        self.runtime, self.raw, self.plan, self.bindings = runtime, raw, plan, bindings
        self.n_tasks, self.n_nodes, self.n_edges = int(raw.n_tasks), int(raw.n_nodes), int(raw.n_edges)
        self.slots = {slot.ref.id: k for k, slot in enumerate(plan.tensors)}
        self.symbols = {symbol.id: constant(value) for symbol, value in zip(plan.symbols, bindings.symbols, strict=True)}

    def view(self, name: str, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """Return a column of the record as it lies in memory."""
        pointer = getattr(self.raw, name)
        if count == 0 or pointer == self.runtime.ffi.NULL:
            return np.zeros(count, dtype)
        return np.frombuffer(self.runtime.ffi.buffer(pointer, count * np.dtype(dtype).itemsize), dtype)

    @cached_property
    def sites(self) -> tuple[tuple[Submit, np.ndarray[Any, Any] | slice], ...]:
        """Each call of the workload with the tasks that it made."""
        of_task = self.view("task_site", self.n_tasks, np.int32)
        by_site = {task.site: task for task in submits(self.plan)}
        present = np.unique(of_task).tolist()
        if len(present) == 1:
            return ((by_site[present[0]], slice(None)),)
        order = np.argsort(of_task, kind="stable")
        bounds = np.searchsorted(of_task[order], [*present, len(by_site)])
        return tuple((by_site[site], order[bounds[k]:bounds[k + 1]]) for k, site in enumerate(present))

    def numbers(self, at: np.ndarray[Any, Any] | slice) -> np.ndarray[Any, Any]:
        """Return the positions of some tasks in the record."""
        return np.arange(self.n_tasks)[at]

    def leaves(self) -> Iterator[tuple[Submit, np.ndarray[Any, Any] | slice, SiteColumns]]:
        """Yield each call of the workload, its tasks, and what is known of them."""
        for task, at in self.sites:
            yield task, at, self._columns_of(task, at)

    def _columns_of(self, task: Submit, at: np.ndarray[Any, Any] | slice) -> SiteColumns:
        if task.site not in self._by_site:
            self._by_site[task.site] = SiteColumns(self, task, at)
        return self._by_site[task.site]

    @cached_property
    def _by_site(self) -> dict[int, SiteColumns]:
        return {}

    @cached_property
    def streams(self) -> np.ndarray[Any, Any]:
        """The stream of each task."""
        return self.view("task_stream", self.n_tasks, np.int32)

    @cached_property
    def first_streams(self) -> Mapping[int, int]:
        """By site of a process: the stream of its first replica."""
        return {task.site: process.stream for item in items_of(self.plan) if isinstance(item, Pipeline) for process in item.processes
                for task in items_in(process.body) if isinstance(task, Submit)}

    @cached_property
    def index_begin(self) -> np.ndarray[Any, Any]:
        """Where the indices of each task begin."""
        return self.view("index_begin", self.n_tasks + 1, np.int64)

    @cached_property
    def index(self) -> np.ndarray[Any, Any]:
        """The indices of all tasks."""
        return self.view("index", int(self.index_begin[-1]), np.int64)

    @cached_property
    def arg_begin(self) -> np.ndarray[Any, Any]:
        """Where the memory arguments of each task begin."""
        return self.view("arg_begin", self.n_tasks + 1, np.int64)

    @cached_property
    def args(self) -> np.ndarray[Any, Any]:
        """The memory arguments of all tasks: extent and what else a pto_arg has."""
        ffi = self.runtime.ffi
        dtype = np.dtype({"names": ["extent"], "formats": [(np.int64, (2,))], "offsets": [ffi.offsetof("pto_arg", "extent")],
                          "itemsize": ffi.sizeof("pto_arg")})
        return self.view("args", int(self.arg_begin[-1]), dtype)

    @cached_property
    def scalar_begin(self) -> np.ndarray[Any, Any]:
        """Where the scalar arguments of each task begin."""
        return self.view("scalar_begin", self.n_tasks + 1, np.int64)

    @cached_property
    def scalars(self) -> np.ndarray[Any, Any]:
        """The scalar arguments of all tasks, 64-bit slots."""
        return self.view("scalars", int(self.scalar_begin[-1]), np.int64)


class SiteColumns:
    """What is known of the tasks of one call: a leaf of `evaluate_columns`."""

    def __init__(self, tasks: RecordedTasks, task: Submit, at: np.ndarray[Any, Any] | slice) -> None:
        self._tasks, self._task, self._at = tasks, task, at
        self._known: dict[s.Scalar, Column] = {}
        self._indices = {node: k for k, node in reversed(tuple(enumerate(task.index)))}
        params = tasks.plan.kernels[task.kernel].kernel
        self._places = {param.name: k for k, param in enumerate(params.memory_params)}
        self._values = {param.name: (k, param.dtype) for k, param in enumerate(params.scalar_params)}

    def __call__(self, node: s.Scalar) -> Column | None:
        """Return the column of a node that is known as a whole."""
        known = self._known.get(node)
        if known is None:
            known = self._column(node)
            if known is not None:
                self._known[node] = known
        return known

    def loops_of(self, number: int) -> dict[s.Var, int]:
        """Return the loop variables of one task, those that its record has."""
        place = int(np.flatnonzero(self._tasks.numbers(self._at) == number)[0])
        known = ((var, self(var)) for var in self._task.loops)
        return {var: int(column[place]) for var, column in known if column is not None}

    def _column(self, node: s.Scalar) -> Column | None:
        tasks, at = self._tasks, self._at
        if node in self._indices:
            index: Column = tasks.index[tasks.index_begin[:-1][at] + self._indices[node]]
            return index
        match node:
            case s.TaskIndex():
                return np.arange(tasks.raw.first_task, tasks.raw.first_task + tasks.n_tasks)[at]
            case s.ReplicaIndex():
                return tasks.streams[at].astype(np.int64) - tasks.first_streams.get(self._task.site, 0)
            case s.SymbolRef(_, symbol):
                return tasks.symbols.get(symbol)
            case s.DimOf(tensor, dim):
                return self._of_array(tensor.id, lambda array: int(array.shape[dim]))
            case s.StrideOf(tensor, dim):
                return self._of_array(tensor.id, lambda array: int(array.strides[dim]) // array.itemsize)
            case s.ParamExtent(name, dim):
                extent: Column = tasks.args["extent"][tasks.arg_begin[:-1][at] + self._places[name], dim]
                return extent
            case s.ParamScalar(name):
                k, dtype = self._values[name]
                slots: Column = tasks.scalars[tasks.scalar_begin[:-1][at] + k]
                return slots.view(np.float64) if dtype.is_float else slots != 0 if dtype.is_bool else slots
            case _:
                return None

    def _of_array(self, tensor: int, number: Any) -> Column | None:
        slot = self._tasks.slots.get(tensor)
        if slot is None or self._tasks.plan.tensors[slot].fresh:
            return None
        return constant(number(self._tasks.bindings.arrays[slot]))
