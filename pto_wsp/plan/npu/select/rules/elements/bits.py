"""Bit by bit: and, or, xor, not, on integers and masks; shifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas.bits import shifted, wrapped
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.rules.elements.composed import lanes_of, name_of
from pto_wsp.plan.npu.select.rules.elements.masks import of_masks
from pto_wsp.types.dtype import DType

_NAMES = {"and_": "TAND", "or_": "TOR", "xor": "TXOR"}


def _bitwise(b: Builder, stmt: k.Compute) -> Held:
    work, (x, *more) = lanes_of(b, stmt)
    dtype = stmt.result.type.dtype
    if dtype.is_bool:
        return work.finish(of_masks(stmt.op, work, x, *more), name_of(stmt))
    if more:
        return work.finish(work.bitwise(_NAMES[stmt.op], x, *more), name_of(stmt))
    return work.finish(wrapped(work, _opposite(work, x), dtype), name_of(stmt))


def _opposite(work: Lanes, x: Lane) -> Lane:
    """Return ~x, which is -x - 1."""
    return work.add(work.mul(x, -1), -1)


def _shift(b: Builder, stmt: k.Compute) -> Held:
    work, operands = lanes_of(b, stmt)
    dtype, left, kept = stmt.result.type.dtype, stmt.op == "shl", operands[0].dtype
    x, y = (widened(work, value) for value in operands)
    result = shifted(work, x, y, left, dtype)
    return work.finish(narrowed(work, wrapped(work, result, dtype) if left else result, kept), name_of(stmt))


def widened(work: Lanes, x: Lane) -> Lane:
    """Return i16 as i32; i32 as it is."""
    return x if x.dtype is DType.I32 else work.convert(work.convert(x, DType.F32), DType.I32, "RINT")


def narrowed(work: Lanes, x: Lane, dtype: DType) -> Lane:
    """Return i32 that fit as i16, if that is the dtype."""
    return x if x.dtype is dtype else work.convert(work.convert(x, DType.F32, "RINT"), dtype, "RINT")


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    **dict.fromkeys((*_NAMES, "not_"), _bitwise), "shl": _shift, "shr": _shift}
