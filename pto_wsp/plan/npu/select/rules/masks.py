"""Comparisons, the choice by a mask, and logic on masks.

On chip a mask is 0 and 1 in f32. Packed bits live only between the comparison that gives them and the choice that takes them, and both
handle elements of one width: how bits lie for another is not relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes, Relation
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.rules.composed import lanes_of, name_of
from pto_wsp.types.dtype import DType, Family

_RELATIONS: Mapping[str, Relation] = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


def _compare(b: Builder, stmt: k.Compute) -> Held:
    work, (x, y) = lanes_of(b, stmt)
    operand = stmt.operands[0]
    dtype = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    return work.finish(compared(work, _RELATIONS[stmt.op], x, y, dtype.family is Family.UINT and dtype.nbytes == 4), name_of(stmt))


def compared(work: Lanes, relation: Relation, x: Lane, y: Lane, unsigned: bool = False) -> Lane:
    """Return 0 and 1 in f32. i32 is compared for being equal only: order comes from the larger of both."""
    if x.dtype is not DType.I32:
        if x.dtype is not DType.F32:
            x, y = (work.convert(value, DType.F32) for value in (x, y))
        return work.select(work.compare(x, relation, y), 1.0, 0.0)
    if unsigned and relation not in ("EQ", "NE"):
        x, y = (work.add(value, -(1 << 31)) for value in (x, y))
    match relation:
        case "EQ" | "NE":
            holds, yes = work.compare(x, "EQ", y), relation == "EQ"
        case "GE" | "LT":
            holds, yes = work.compare(work.max(x, y), "EQ", x), relation == "GE"
        case "LE" | "GT":
            holds, yes = work.compare(work.max(x, y), "EQ", y), relation == "LE"
    return work.select(holds, float(yes), float(not yes))


def _where(b: Builder, stmt: k.Compute) -> Held:
    work, (mask, then, other) = lanes_of(b, stmt)
    wide = then.dtype.nbytes == 4
    flags = mask if wide else work.convert(mask, DType.F16, "RINT")
    return work.finish(work.select(work.compare(flags, "NE", 0.0), then, other), name_of(stmt))


def of_masks(op: str, work: Lanes, x: Lane, y: Lane | None = None) -> Lane:
    """Return and_, or_, xor or not_ of masks."""
    if y is None:
        return work.sub(1.0, x)
    match op:
        case "and_":
            return work.mul(x, y)
        case "or_":
            return work.max(x, y)
        case _:
            return work.abs(work.sub(x, y))


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {**dict.fromkeys(_RELATIONS, _compare), "where": _where}
