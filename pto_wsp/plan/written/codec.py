"""JSON for a whole plan, kernels included: what a saved program carries so that it runs where its source is not.

What comes back is equal to what went in, and of spans the basename and line stay, so that its digest is the same too.
"""

from __future__ import annotations

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.expr.codec import Data, NodeCodec, check_types
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.written.tags import PLAN_TAGS
from pto_wsp.source import here

_CODEC = NodeCodec(PLAN_TAGS, key="node", spans=True)     # plans have fields called kind


def plan_to_data(plan: TaskPlan) -> Data:
    """Return a plan as plain JSON data."""
    return _CODEC.to_data(plan)


def plan_from_data(data: Data) -> TaskPlan:
    """Return the plan that `plan_to_data` wrote.

    Raises: W102 for data that is none of ours.
    """
    plan = _CODEC.from_data(data)
    if not isinstance(plan, TaskPlan):
        raise WorkloadStructureError("this JSON is not a plan", here(), found=f"{type(plan).__name__}")
    check_types(plan, PLAN_TAGS)
    return plan
