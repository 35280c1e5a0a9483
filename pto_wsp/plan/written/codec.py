"""JSON for a whole plan, kernels included: what a saved program carries so that it runs where its source is not.

What comes back is equal to what went in, and of spans the basename and line stay, so that its digest is the same too.
"""

from __future__ import annotations

from dataclasses import is_dataclass

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.expr.codec import ENUMS, NODES, Data, NodeCodec, check_types
from pto_wsp.plan import model, rules
from pto_wsp.plan.model import TaskPlan
from pto_wsp.source import here

# A plan's items have the names of the workload's: theirs are written `plan.Loop`.
_PLAN_NODES = {
    f"plan.{kind.__name__}": kind
    for module in (model, rules)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
}
_PLAN_ENUMS = {f"plan.{kind.__name__}": kind
               for kind in (model.CheckKind, rules.Column, rules.WindowUnit, rules.FullWindow, rules.Release)}
_CODEC = NodeCodec({**NODES, **_PLAN_NODES}, {**ENUMS, **_PLAN_ENUMS}, key="node", spans=True)     # plans have fields called kind


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
    check_types(plan)
    return plan
