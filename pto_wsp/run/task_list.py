"""List the tasks of a small workload without running them.

>>> print(list_tasks(plan, bindings, limit=1000))
copy[b=0](x=X[0, 0:4], y=Y[0, 0:4])
copy[b=1](x=X[1, 0:4], y=Y[1, 0:4])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto_wsp.doors import Displayed
from pto_wsp.errors import ProgramStateError, RecordLimitError
from pto_wsp.ir.kernel import MemoryParam, Role
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.text import listed, wrap_text
from pto_wsp.run.bound import Array, Bindings, Number
from pto_wsp.run.failures import task_name
from pto_wsp.run.orchestrator import Made, MarkInstance, PlacedView, Released, TaskInstance
from pto_wsp.run.pipelines import enumerate_tasks
from pto_wsp.run.record import MarkFlag
from pto_wsp.run.sanitize import element_block, shape_and_strides, shown_elements
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@dataclass(frozen=True, slots=True)
class TaskRegion:
    """What a task uses of a tensor through one parameter: the smallest block that contains it, as first index and end of each dimension.

    `extent`: the rows and columns that are bound; fewer than the tile's for a tail. `block` is empty for a region without elements.
    """

    param: str
    role: Role
    tensor: str
    dtype: str
    shape: tuple[int, ...]
    block: tuple[tuple[int, int], ...]
    extent: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One task: its name with indices, the indices alone, and for each parameter the bound region or number as text.

    `axes`: the name of each index, as a number for a constant. `regions`: the regions as numbers.
    """

    name: str
    kernel: str
    index: tuple[int, ...]
    arguments: tuple[tuple[str, str], ...]
    axes: tuple[str, ...] = ()
    regions: tuple[TaskRegion, ...] = ()

    def __str__(self) -> str:
        return wrap_text(listed(f"{self.name}(", tuple(f"{name}={value}" for name, value in self.arguments), ",", ")"))


class TaskList(tuple[ListedTask, ...], Displayed):
    """Tasks in program order; prints one per line, and a notebook shows them as a grid."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "(no tasks)"

    def __repr__(self) -> str:
        return f"TaskList({counted(len(self), 'task')})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class _TooMany(Exception):
    """Ends the enumeration at the limit."""


class _DependsOnTasks(Exception):
    """Ends the enumeration at a read of what tasks compute."""


class _TaskCollector:
    """Keeps the tasks of an enumeration, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.tasks: list[TaskInstance] = []
        self._limit = limit
        self._n_nodes = 0

    def submit(self, task: TaskInstance) -> int:
        if len(self.tasks) >= self._limit:
            raise _TooMany
        self.tasks.append(task)
        return self._node()

    def join(self, nodes: tuple[int, ...]) -> int:
        return self._node()

    def mark(self, mark: MarkInstance) -> int:
        if MarkFlag.NOW in mark.flags:
            raise _DependsOnTasks
        return self._node()

    def make(self, made: Made) -> None:
        pass

    def release(self, released: Released) -> None:
        pass

    def tick(self) -> None:
        pass

    def array_of(self, fresh: int) -> Array:
        raise _DependsOnTasks

    def _node(self) -> int:
        self._n_nodes += 1
        return self._n_nodes - 1


def list_tasks(plan: TaskPlan, bindings: Bindings, limit: int) -> TaskList:
    """Return the tasks that a run with these bindings makes, in program order.

    Raises: R115 for more than `limit` of them, R103 where which ones there are depends on what tasks compute; R104 for a check that does
    not hold, and what a pipeline that gets stuck raises.
    """
    sink = _TaskCollector(limit)
    try:
        enumerate_tasks(plan, bindings, sink)
    except _TooMany:
        raise RecordLimitError(f"`{plan.name}` has more than {limit} tasks, too many to list", here(),
                               help="give its axes and symbols smaller sizes: w.tasks(name=4)") from None
    except _DependsOnTasks:
        raise ProgramStateError(f"which tasks `{plan.name}` has depends on what its tasks compute", here(),
                                help="run it, and look at program.graph.tasks") from None
    return TaskList(_listed(plan, bindings, task) for task in sink.tasks)


def _listed(plan: TaskPlan, bindings: Bindings, task: TaskInstance) -> ListedTask:
    kernel = plan.kernels[task.submit.kernel].kernel
    regions = dict(zip((param.name for param in kernel.memory_params), (_region(plan, bindings, view) for view in task.views), strict=True))
    numbers = dict(zip((param.name for param in kernel.scalar_params), map(_number, task.scalars), strict=True))
    arguments = regions | numbers
    used = tuple(_used(plan, bindings, param, view) for param, view in zip(kernel.memory_params, task.views, strict=True))
    return ListedTask(task_name(plan, task.submit, task.index), kernel.name, task.index,
                      tuple((param.name, arguments[param.name]) for param in kernel.params), tuple(task.submit.labels), used)


def _used(plan: TaskPlan, bindings: Bindings, param: MemoryParam, view: PlacedView) -> TaskRegion:
    ref = plan.tensors[view.slot].ref
    shape, strides = shape_and_strides(plan, bindings, view.slot)
    block = block_of(shape, strides, view.offset, view.extent, view.stride)
    return TaskRegion(param.name, param.role, ref.shown, str(ref.dtype), tuple(shape), block, view.extent)


def _number(value: Number) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _region(plan: TaskPlan, bindings: Bindings, view: PlacedView) -> str:
    """Return the smallest block of the tensor that contains the region, as index text."""
    name = plan.tensors[view.slot].ref.shown
    if 0 in view.extent:
        return f"{name}[nothing]"
    shape, strides = shape_and_strides(plan, bindings, view.slot)
    return shown_elements(name, shape, strides, _corners(shape, strides, view.offset, view.extent, view.stride))


def block_of(shape: Sequence[int], strides: Sequence[int], offset: int, extent: Sequence[int],
             steps: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the smallest block of a tensor that contains a strided region: first index and end of each dimension; () for no elements.

    `offset`: of the region's first element from the tensor's; strides and steps in elements.
    """
    if 0 in extent or 0 in shape:
        return ()
    return element_block(shape, strides, _corners(shape, strides, offset, extent, steps))


def _corners(shape: Sequence[int], strides: Sequence[int], offset: int, extent: Sequence[int],
             steps: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the corners of a region, in elements from the tensor's lowest address."""
    lowest = sum(min(0, (n - 1) * stride) for n, stride in zip(shape, strides, strict=True))
    corners = [offset - lowest]
    for n, step in zip(extent, steps, strict=True):
        corners += [corner + (n - 1) * step for corner in corners] if n > 1 else []
    return np.array(corners, np.int64)
