"""Ops of several instructions on f32: functions of single elements, rounding, floats divided with a floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas import curves, division, rounding
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.shapes import as_tile, expanded, number_of, on_chip
from pto_wsp.types.dtype import DType

_CURVES: Mapping[str, Callable[[Lanes, Lane], Lane]] = {
    "tanh": curves.tanh, "sigmoid": curves.sigmoid, "silu": curves.silu, "erf": curves.erf, "gelu": curves.gelu, "sin": curves.sin,
    "cos": curves.cos, "floor": rounding.down, "ceil": rounding.up, "round": rounding.rounded}


def lanes_of(b: Builder, stmt: k.Compute, dtype: DType | None = None) -> tuple[Lanes, tuple[Lane, ...]]:
    """Return work on the shape of the result and its operands repeated to it, in `dtype`, else as they lie on chip."""
    work = Lanes(b, *stmt.result.type.shape)
    return work, tuple(lane_of(work, operand, stmt.result.type.shape, dtype or on_chip(operand)) for operand in stmt.operands)


def lane_of(work: Lanes, operand: k.Operand, shape: tuple[int, int], dtype: DType) -> Lane:
    """Return an operand repeated to a shape; a number is put into every lane where it is used."""
    number = number_of(work.b, operand) if isinstance(operand, k.ScalarOperand) else None
    if number is not None:
        return work.op("TEXPANDS", work.b.number(number.value, dtype), dtype=dtype)
    return work.given(expanded(work.b, as_tile(work.b, operand, dtype), *shape))


def name_of(stmt: k.Compute) -> str:
    """Return what rooms of a statement are called."""
    return stmt.result.name or f"{stmt.op.rstrip('_')}_{stmt.result.id}"


def _curve(b: Builder, stmt: k.Compute) -> Held:
    work, (x,) = lanes_of(b, stmt, DType.F32)
    tanh_form = ("approximate", "tanh") in stmt.attrs
    return work.finish((curves.gelu_tanh if tanh_form else _CURVES[stmt.op])(work, x), name_of(stmt))


def _pow(b: Builder, stmt: k.Compute) -> Held:
    work, (x, y) = lanes_of(b, stmt, DType.F32)
    return work.finish(curves.power(work, x, y), name_of(stmt))


def _sign(b: Builder, stmt: k.Compute) -> Held:
    work, (x,) = lanes_of(b, stmt)
    if x.dtype in (DType.I16, DType.I32):
        result = work.min(work.max(x, -1), 1)
    else:
        x = x if x.dtype is DType.F32 else work.convert(x, DType.F32)
        below = work.select(work.compare(x, "LT", 0.0), -1.0, x)
        result = work.select(work.compare(x, "GT", 0.0), 1.0, work.select(work.compare(below, "EQ", 0.0), 0.0, below))
    return work.finish(result, name_of(stmt))


def _divided(b: Builder, stmt: k.Compute) -> Held:
    """Both floordiv and mod; small integers through f32, whose quotients round rightly."""
    dtype = stmt.result.type.dtype
    second = stmt.op == "mod"
    if dtype.is_float:
        work, (x, y) = lanes_of(b, stmt, DType.F32)
        return work.finish(division.float_divided(work, x, y)[second], name_of(stmt))
    work, (x, y) = lanes_of(b, stmt)
    if dtype.nbytes == 4:
        return work.finish(division.wide_divided(work, x, y)[second], name_of(stmt))
    wide = tuple(work.convert(value, DType.F32, "RINT") for value in (x, y))
    result = work.convert(division.small_divided(work, *wide)[second], DType.I32, "RINT")
    if x.dtype is DType.I16:       # -32768 // -1 wraps
        low = work.shift(work.shift(result, 16), -16)
        result = work.convert(work.convert(low, DType.F32, "RINT"), DType.I16, "RINT")
    return work.finish(result, name_of(stmt))


# u32 lies on chip by the bits of an i32, which divide otherwise.
LACKING: Mapping[str, tuple[DType, ...]] = dict.fromkeys(("floordiv", "mod"), (DType.U32,))
RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    **dict.fromkeys(_CURVES, _curve), "pow": _pow, "sign": _sign, "floordiv": _divided, "mod": _divided}
