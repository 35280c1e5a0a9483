"""Conversion between dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.ops.entries.cast import cast
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried
from pto_wsp.plan.npu.select.formulas import conversion
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.rules.elements.composed import lanes_of, name_of
from pto_wsp.plan.npu.select.rules.elements.masks import compared
from pto_wsp.types.dtype import DType


def _cast(b: Builder, stmt: k.Compute) -> Held:
    operand, target = stmt.operands[0], stmt.result.type.dtype
    source = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    work, (x,) = lanes_of(b, stmt)
    if source is target and not source.is_float:
        return work.finish(x, name_of(stmt))
    return work.finish(cast_lanes(work, x, source, target, *cast.rules_of(stmt.attrs)), name_of(stmt))


def cast_lanes(work: Lanes, x: Lane, source: DType, target: DType, mode: str | None, saturate: bool | None) -> Lane:
    """Return numbers of one dtype as another, as they lie on chip."""
    kept = carried(target)
    if target.is_bool:
        return compared(work, "NE", x, work.full(0, x.dtype)) if x.dtype is not DType.BF16 else \
            compared(work, "NE", work.convert(x, DType.F32), work.full(0.0, DType.F32))
    if source.is_bool:
        return x if target.is_float else work.convert(x, kept, "RINT")
    if source.is_integer and target.is_integer:
        return conversion.integer_to_integer(work, x, source, target, kept, bool(saturate))
    wide = conversion.integer_to_float(work, x, source, target) if source.is_integer else \
        x if x.dtype is DType.F32 else work.convert(x, DType.F32)
    if target is DType.F32:
        return conversion.bounded(work, wide) if saturate and source.is_float else wide
    if target.is_float:
        return conversion.float_to_half(work, wide, target, mode or "rint", bool(saturate))
    return conversion.float_to_integer(work, wide, target, kept, mode or "trunc", saturate is not False)


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {"cast": _cast}
