"""List the tasks of a workload before it is compiled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pto_wsp.api.bindings import BoundBefore, run_shape, sizes_of
from pto_wsp.errors import PtoError
from pto_wsp.ir.rewrite import Canonical
from pto_wsp.ir.tensor import Tensor
from pto_wsp.passes.lower import lower
from pto_wsp.run.bound import bind, check_axes
from pto_wsp.run.task_list import TaskList, list_tasks
from pto_wsp.source import here

MAX_LISTED = 1000


def tasks_of(canonical: Canonical, tensors: Mapping[int, Tensor], sizes: Mapping[str, object]) -> TaskList:
    """Return the tasks of a workload in program order. `sizes` binds symbols, axes and tensors by name, as for a run.

    Raises: R102, R113 and R114 for what does not fit, R115 for more than 1000 tasks, R103 where tasks decide which tasks there are.
    """
    plan = lower(canonical.workload)
    arrays: list[object] = []
    for slot in plan.tensors:
        tensor = tensors.get(canonical.tensors[slot.ref.id])
        arrays.append(None if tensor is None else tensor.data)
    values: list[object] = [symbol.default for symbol in plan.symbols]
    sized_by_runs = sizes_of(canonical, plan, tensors)
    try:
        BoundBefore(plan, arrays, values).bind_all(sizes)
        for k, slot in enumerate(plan.tensors):
            if arrays[k] is None and not slot.scalars:      # its elements are never read
                shape = run_shape(plan, k, sized_by_runs[k], values) if k in sized_by_runs else slot.ref.shape
                arrays[k] = None if shape is None else np.broadcast_to(np.zeros((), slot.ref.dtype.np), shape).copy()
        bound = bind(plan, arrays, values, "give it by name: tasks({}={})")
        check_axes(plan, bound)
        return list_tasks(plan, bound, MAX_LISTED)
    except PtoError as problem:
        for error in (problem, *problem.others):
            error.span = error.span or here()
        raise
