"""Rules for elementwise functions: single instructions, reciprocals, and formulas of several instructions.

TRSQRT and TRECIP may be estimates of a few bits on a device; TSQRT and TDIV round correctly everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.rules import curves, formulas
from pto_wsp.npu.rules.builder import Builder, ChipTile
from pto_wsp.npu.rules.lanes import Lane, Lanes
from pto_wsp.npu.rules.operands import as_tile, computed_in, expand_tile, fill_tile, number_operand, on_chip

_CURVES: Mapping[str, Callable[[Lanes, Lane], Lane]] = {
    "tanh": curves.tanh, "sigmoid": curves.sigmoid, "silu": curves.silu, "erf": curves.erf, "gelu": curves.gelu, "sin": curves.sin,
    "cos": curves.cos, "exp2": curves.exp2, "log2": curves.log2, "floor": formulas.round_down, "ceil": formulas.round_up,
    "round": formulas.round_to_even}


def lanes_of(b: Builder, stmt: k.Compute, dtype: DType | None = None) -> tuple[Lanes, tuple[Lane, ...]]:
    """Return a formula of the result's shape, and the statement's operands repeated to it, in `dtype` or as stored on chip."""
    work = Lanes(b, *stmt.result.type.shape)
    return work, tuple(lane_of(work, operand, stmt.result.type.shape, dtype or on_chip(operand)) for operand in stmt.operands)


def lane_of(work: Lanes, operand: k.Operand, shape: tuple[int, int], dtype: DType) -> Lane:
    """Return an operand repeated to a shape; a number fills a tile where it is used."""
    number = number_operand(work.b, operand) if isinstance(operand, k.ScalarOperand) else None
    if number is not None:
        return work.op("TEXPANDS", work.b.number(number.value, dtype), dtype=dtype)
    return work.given(expand_tile(work.b, as_tile(work.b, operand, dtype), *shape))


def name_of(stmt: k.Compute) -> str:
    """Return the name for on-chip buffers of a statement."""
    return stmt.result.name or f"{stmt.op.rstrip('_')}_{stmt.result.id}"


def _curve(b: Builder, stmt: k.Compute) -> ChipTile:
    work, (x,) = lanes_of(b, stmt, DType.F32)
    tanh_form = ("approximate", "tanh") in stmt.attrs
    return work.finish((curves.gelu_tanh if tanh_form else _CURVES[stmt.op])(work, x), name_of(stmt))


def _pow(b: Builder, stmt: k.Compute) -> ChipTile:
    work, (x, y) = lanes_of(b, stmt, DType.F32)
    return work.finish(curves.power(work, x, y), name_of(stmt))


def _sign(b: Builder, stmt: k.Compute) -> ChipTile:
    work, (x,) = lanes_of(b, stmt)
    if x.dtype in (DType.I16, DType.I32):
        result = work.min(work.max(x, -1), 1)
    else:
        x = x if x.dtype is DType.F32 else work.convert(x, DType.F32)
        below = work.select(work.compare(x, "LT", 0.0), -1.0, x)
        result = work.select(work.compare(x, "GT", 0.0), 1.0, work.select(work.compare(below, "EQ", 0.0), 0.0, below))
    return work.finish(result, name_of(stmt))


def _floor_divide(b: Builder, stmt: k.Compute) -> ChipTile:
    """Return the result of floordiv or mod. Small integers divide in f32, where their quotients round correctly."""
    dtype = stmt.result.type.dtype
    second = stmt.op == "mod"
    if dtype.is_float:
        work, (x, y) = lanes_of(b, stmt, DType.F32)
        return work.finish(formulas.divide_floats(work, x, y)[second], name_of(stmt))
    work, (x, y) = lanes_of(b, stmt)
    if dtype.nbytes == 4:
        return work.finish(formulas.divide_i32(work, x, y)[second], name_of(stmt))
    wide = tuple(work.convert(value, DType.F32, "RINT") for value in (x, y))
    result = work.convert(formulas.divide_small_integers(work, *wide)[second], DType.I32, "RINT")
    if x.dtype is DType.I16:       # -32768 // -1 wraps
        low = work.shift(work.shift(result, 16), -16)
        result = work.convert(work.convert(low, DType.F32, "RINT"), DType.I16, "RINT")
    return work.finish(result, name_of(stmt))


# A u32 is stored on chip with the bits of an i32, which divides differently.
LACKING: Mapping[str, tuple[DType, ...]] = dict.fromkeys(("floordiv", "mod"), (DType.U32,))
COMPOSED_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys(_CURVES, _curve), "pow": _pow, "sign": _sign, "floordiv": _floor_divide, "mod": _floor_divide}


# -- single instructions and reciprocals -----------------------------------------------------------


FUNCTIONS = {"exp": "TEXP", "log": "TLOG", "sqrt": "TSQRT"}


def _function(b: Builder, stmt: k.Compute) -> ChipTile:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    b.emit(FUNCTIONS[stmt.op], b.flat(out), b.flat(tile))
    return out


def _reciprocal(b: Builder, stmt: k.Compute) -> ChipTile:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    ones = fill_tile(b, tile.rows, tile.cols, dtype, k.ScalarOperand(Const(1.0), dtype), "ones")
    if stmt.op == "rsqrt":
        b.emit("TSQRT", b.flat(out), b.flat(tile))
        tile = out
    b.emit("TDIV", b.flat(out), b.flat(ones), b.flat(tile))
    return out


FUNCTION_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys(FUNCTIONS, _function), "rsqrt": _reciprocal, "recip": _reciprocal}
