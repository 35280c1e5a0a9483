"""Tensors that bodies make for themselves: their shapes are known when compiling."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr.rewrite import rewrite
from pto_wsp.plan.model import Check, Item, Submit, TaskPlan
from pto_wsp.plan.walk import map_items
from pto_wsp.types import scalar as s


def with_known_shapes(plan: TaskPlan) -> TaskPlan:
    """Return the plan with the extents and strides of such tensors as numbers, and without the checks that hold for that.

        check 0 <= i <= scratch.shape[0] - 1;  check 8 <= scratch.shape[1] <= 8    →    check 0 <= i <= 3
    """
    made = {slot.ref.id for slot in plan.tensors if slot.fresh}

    def known(node: object) -> object | None:
        match node:
            case s.DimOf(tensor, dim) if tensor.id in made:
                return s.Const(tensor.shape[dim])
            case s.StrideOf(tensor, dim) if tensor.id in made:
                return s.Const(tensor.layout.strides[dim])
            case s.Unary(op, value):
                return s.unary(op, value)
            case s.Binary(op, lhs, rhs):
                return s.binary(op, lhs, rhs)
            case _:
                return None

    def without(item: Item) -> Item:
        return replace(item, checks=tuple(check for check in item.checks if not _holds(check))) if isinstance(item, Submit) else item

    return map_items(replace(plan, body=rewrite(plan.body, known)), without) if made else plan


def _holds(check: Check) -> bool:
    match check.lower, check.value, check.upper:
        case s.Const(lower), s.Const(value), s.Const(upper):
            return lower <= value <= upper
        case _:
            return False
