"""Comparisons, the choice by a mask, and logic on masks.

On chip a mask is 0 and 1 in f32. Packed bits live only between the comparison that gives them and the choice that takes them, and both
handle elements of one width: how bits lie for another is not relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import bodies_of, uses_of, walk
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes, Relation
from pto_wsp.plan.npu.select.held import Held, Mask
from pto_wsp.plan.npu.select.rules.elements.composed import lane_of, lanes_of, name_of
from pto_wsp.plan.npu.select.shapes import on_chip
from pto_wsp.types.dtype import DType

_RELATIONS: Mapping[str, Relation] = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


def packed_masks(kernel: k.Kernel) -> frozenset[int]:
    """Return comparisons, by value, that stay packed: all that they do is choose between elements as wide as those compared."""
    found = {stmt.result.id: stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Compute) and stmt.op in _RELATIONS}
    for stmt in walk(kernel.body):
        chosen_by = _choice(stmt)
        for value in () if bodies_of(stmt) else uses_of(stmt):
            if value.id != chosen_by:
                found.pop(value.id, None)
    return frozenset(found)


def _choice(stmt: k.Stmt) -> int | None:
    """Return the value by which a statement chooses between elements of four bytes, if its bits are as many; None for any other."""
    if not isinstance(stmt, k.Compute) or stmt.op != "where" or carried(stmt.result.type.dtype).nbytes != 4:
        return None
    condition, *sides = stmt.operands
    if not isinstance(condition, k.Value) or condition in sides or condition.type.shape != stmt.result.type.shape:
        return None
    return condition.id


def packed(b: Builder, stmt: k.Compute) -> Mask:
    """Return a comparison as packed bits."""
    work, holds, yes = _comparison(b, stmt)
    return Mask(work.finish(holds, name_of(stmt)), yes)


def _compare(b: Builder, stmt: k.Compute) -> Held:
    work, holds, yes = _comparison(b, stmt)
    return work.finish(work.select(holds, float(yes), float(not yes)), name_of(stmt))


def _comparison(b: Builder, stmt: k.Compute) -> tuple[Lanes, Lane, bool]:
    work, (x, y) = lanes_of(b, stmt)
    operand = stmt.operands[0]
    dtype = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    return work, *_holds(work, _RELATIONS[stmt.op], x, y, dtype is DType.U32)


def compared(work: Lanes, relation: Relation, x: Lane, y: Lane) -> Lane:
    """Return 0 and 1 in f32."""
    holds, yes = _holds(work, relation, x, y, False)
    return work.select(holds, float(yes), float(not yes))


def _holds(work: Lanes, relation: Relation, x: Lane, y: Lane, unsigned: bool) -> tuple[Lane, bool]:
    """Return the packed bits of a comparison, and whether a set bit means that it holds.

    i32 is compared for being equal only: order comes from the larger of both.
    """
    if x.dtype is not DType.I32:
        if x.dtype is not DType.F32:
            x, y = (work.convert(value, DType.F32) for value in (x, y))
        return work.compare(x, relation, y), True
    if unsigned and relation not in ("EQ", "NE"):
        x, y = (work.add(value, -(1 << 31)) for value in (x, y))
    match relation:
        case "EQ" | "NE":
            return work.compare(x, "EQ", y), relation == "EQ"
        case "GE" | "LT":
            return work.compare(work.max(x, y), "EQ", x), relation == "GE"
        case "LE" | "GT":
            return work.compare(work.max(x, y), "EQ", y), relation == "LE"


def _where(b: Builder, stmt: k.Compute) -> Held:
    condition, shape = stmt.operands[0], stmt.result.type.shape
    mask = b.masks.get(condition.id) if isinstance(condition, k.Value) else None
    if mask is not None:
        work = Lanes(b, *shape)
        then, other = (lane_of(work, side, shape, on_chip(side)) for side in stmt.operands[1:])
        sides = (then, other) if mask.yes else (other, then)
        return work.finish(work.select(work.given_mask(mask.held), *sides), name_of(stmt))
    work, (flags, then, other) = lanes_of(b, stmt)
    flags = flags if then.dtype.nbytes == 4 else work.convert(flags, DType.F16, "RINT")
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
