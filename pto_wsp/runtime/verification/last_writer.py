"""Which task writes an element last, in program order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto_wsp.plan.model import TaskPlan
from pto_wsp.runtime.bound.binding import Array, Bindings
from pto_wsp.runtime.sanitize.elements import Region, shared_addresses
from pto_wsp.runtime.stream.orchestrator import PlacedView, TaskInstance


def last_writer(plan: TaskPlan, bindings: Bindings, tasks: Sequence[TaskInstance], slot: int, index: tuple[int, ...]) -> int | None:
    """Return the number of the last task that has an element in a region which it writes, under whichever name; None where none has."""
    array = bindings.arrays[slot]
    element = Region(_address(array) + int(np.dot(index, array.strides)), (1, 1), (1, 1), array.itemsize)
    writes = [[k for k, param in enumerate(use.kernel.memory_params) if param.role.writes] for use in plan.kernels]
    for number in range(len(tasks) - 1, -1, -1):
        task = tasks[number]
        for view in (task.views[k] for k in writes[task.submit.kernel]):
            if view.fresh is None and bindings.groups[view.slot] == bindings.groups[slot]:
                region = _region(bindings.arrays[view.slot], view)
                if _may_hold(region, element.address) and shared_addresses(region, element).size:
                    return number
    return None


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _region(array: Array, view: PlacedView) -> Region:
    return Region(_address(array) + view.offset * array.itemsize, view.extent, view.stride, array.itemsize)


def _may_hold(region: Region, address: int) -> bool:
    """Tell whether an address is among the bytes from a region's first to its last."""
    if 0 in region.extent:
        return False
    reach = [(extent - 1) * stride * region.elem_bytes for extent, stride in zip(region.extent, region.stride, strict=True)]
    return sum(min(0, r) for r in reach) <= address - region.address < sum(max(0, r) for r in reach) + region.elem_bytes
