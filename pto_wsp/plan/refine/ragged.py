"""Pass: say of which outputs a task may keep fewer rows than their tile has.

What a kernel computes behind them is for nothing, so its loops may end there. That an output is not named costs time and no
correctness: tensors bound later may be shorter than those that were declared.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.errors import InternalError
from pto_wsp.expr.kernel import TileParam
from pto_wsp.plan.model import Context, TaskPlan
from pto_wsp.plan.walk import submits
from pto_wsp.types.scalar import Const
from pto_wsp.types.view import declared


def find_ragged_outputs(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set `ragged` of every kernel: outputs whose rows are not as many as the tile's, or not known, in some task."""
    found: list[dict[str, None]] = [{} for _ in plan.kernels]
    for task in submits(plan):
        for param, place in zip(plan.kernels[task.kernel].kernel.memory_params, task.places, strict=True):
            if isinstance(param, TileParam) and not param.role.reads and declared(place.extent[0]) != Const(param.type.rows):
                found[task.kernel][param.name] = None
    return replace(plan, kernels=tuple(replace(use, ragged=tuple(found[at])) for at, use in enumerate(plan.kernels)))


def verify_after_find_ragged_outputs(plan: TaskPlan) -> None:
    """What is ragged is only written."""
    for use in plan.kernels:
        if any(param.role.reads for param in use.kernel.memory_params if param.name in use.ragged):
            raise InternalError("rows that are read are left out", ", ".join(use.ragged))
