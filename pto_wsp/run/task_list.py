"""List the tasks of a small workload without running them.

>>> print(list_tasks(plan, bindings, limit=1000))
copy[b=0](x=X[0, 0:4], y=Y[0, 0:4])
copy[b=1](x=X[1, 0:4], y=Y[1, 0:4])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.errors import ProgramStateError, RecordLimitError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.text import listed, wrap_text
from pto_wsp.run.bound import Array, Bindings, Number
from pto_wsp.run.failures import task_name
from pto_wsp.run.orchestrator import Made, MarkInstance, PlacedView, Released, TaskInstance
from pto_wsp.run.pipelines import enumerate_tasks
from pto_wsp.run.record import MarkFlag
from pto_wsp.run.sanitize import shape_and_strides, shown_elements
from pto_wsp.source import here
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One task: its name with indices, the indices alone, and for each parameter the bound region or number as text."""

    name: str
    kernel: str
    index: tuple[int, ...]
    arguments: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return wrap_text(listed(f"{self.name}(", tuple(f"{name}={value}" for name, value in self.arguments), ",", ")"))


class TaskList(tuple[ListedTask, ...]):
    """Tasks in program order; prints one per line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "(no tasks)"

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

    def turn(self) -> None:
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
    return ListedTask(task_name(plan, task.submit, task.index), kernel.name, task.index,
                      tuple((param.name, arguments[param.name]) for param in kernel.params))


def _number(value: Number) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _region(plan: TaskPlan, bindings: Bindings, view: PlacedView) -> str:
    """Return the smallest block of the tensor that contains the region, as index text."""
    slot = plan.tensors[view.slot]
    if 0 in view.extent:
        return f"{slot.ref.shown}[nothing]"
    shape, strides = shape_and_strides(plan, bindings, view.slot)
    lowest = sum(min(0, (extent - 1) * stride) for extent, stride in zip(shape, strides, strict=True))
    ends = [[0, (extent - 1) * stride] for extent, stride in zip(view.extent, view.stride, strict=True)]
    corners = np.array([view.offset - lowest + row + col for row in ends[0] for col in ends[1]], np.int64)
    return shown_elements(slot.ref.shown, shape, strides, corners)
