"""A plan whose tasks are made of what their record has, so that whatever a schedule says of them can be read from columns.

A task's own bracket indices, extents and scalars take the place of the expressions that they were computed with:
`X[b, lens[b]:...]` may depend on what tasks have changed since, its extent in the record does not.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.plan.model import Submit, TaskPlan
from pto_wsp.plan.walk import map_submits
from pto_wsp.types import scalar as s


def columnar(plan: TaskPlan) -> TaskPlan:
    """Return the plan with `BracketIndex`, `ParamExtent` and `ParamScalar` for what each task is given."""
    return map_submits(plan, lambda task: _columnar(plan, task))


def _columnar(plan: TaskPlan, task: Submit) -> Submit:
    kernel = plan.kernels[task.kernel].kernel
    places = tuple(replace(place, extent=(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1)))
                   for param, place in zip(kernel.memory_params, task.places, strict=True))
    scalars = tuple(replace(value, value=s.ParamScalar(param.name, param.dtype))
                    for param, value in zip(kernel.scalar_params, task.scalars, strict=True))
    index = tuple(node if isinstance(node, s.Var | s.Const) else s.BracketIndex(k) for k, node in enumerate(task.index))
    return replace(task, index=index, places=places, scalars=scalars, checks=(), waits=())
