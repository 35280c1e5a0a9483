"""Quantised tiles: small integers or fp8 with a scale and a zero point, for a whole tile, a row or a column.

Both directions are plain ops of the table in f32 (f64 for f64), so that what is rounded, and where, can be read here.
"""

from __future__ import annotations

from pto_wsp.errors import OperandShapeError, OptionValueError, UnsupportedDTypeError
from pto_wsp.ir.dtype import DType
from pto_wsp.ops import typing
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.elementwise import add, div, mul, round, sub
from pto_wsp.ops.entry import Operand, active, is_tile, user_call
from pto_wsp.ops.rounding import FLOATS, INTEGERS, STORAGE, print_dtypes
from pto_wsp.source import here

_QUANTISED = (*INTEGERS, *STORAGE)


@user_call("pto.quantize")
def quantize(x: Operand, scale: object, zero_point: object = 0, dtype: DType = DType.I8) -> Operand:
    """Return cast(round(x / scale) + zero_point, dtype), saturating; for fp8 the cast alone rounds, and there is no zero point.

    x is a float tile; scale and zero_point are numbers or tiles of [1, 1], [R, 1] (a number a row) or [1, C].
    """
    active("quantize")
    target = typing.as_dtype("quantize", dtype, _QUANTISED)
    tile = typing.require_tile("quantize", x)
    _check("quantize", "x", tile, FLOATS)
    wide = tile.dtype if tile.dtype.is_double else DType.F32
    steps = div(_in(tile, wide), _factor("quantize", "scale", scale, tile, FLOATS, wide))
    if target.is_storage:
        _refuse_zero_point("quantize", zero_point, target)
        return cast(steps, target, saturate=True)
    whole = round(steps)
    return cast(whole if _is_zero(zero_point) else add(whole, _factor("quantize", "zero_point", zero_point, tile, None, wide)), target)


@user_call("pto.dequantize")
def dequantize(q: Operand, scale: object, zero_point: object = 0, dtype: DType = DType.F32) -> Operand:
    """Return (q - zero_point) * scale as floats of `dtype`, computed in f32 (f64 for f64).

    q is a tile of integers or fp8; scale and zero_point as for quantize.
    """
    active("dequantize")
    target = typing.as_dtype("dequantize", dtype, FLOATS)
    tile = typing.require_tile("dequantize", q)
    _check("dequantize", "q", tile, _QUANTISED)
    wide = target if target.is_double else DType.F32
    steps: Operand = cast(tile, wide)
    if tile.dtype.is_storage:
        _refuse_zero_point("dequantize", zero_point, tile.dtype)
    elif not _is_zero(zero_point):
        steps = sub(steps, _factor("dequantize", "zero_point", zero_point, tile, None, wide))
    return _in(mul(steps, _factor("dequantize", "scale", scale, tile, FLOATS, wide)), target)


def _in(x: Operand, dtype: DType) -> Operand:
    return x if x.dtype is dtype else cast(x, dtype)


def _factor(name: str, what: str, value: object, tile: Operand, supported: tuple[DType, ...] | None, wide: DType) -> object:
    """Return a scale or zero point as the operand it is: a number as it stands, a tile in the dtype that is computed in."""
    if not is_tile(value):
        return value
    found = typing.require_tile(name, value)
    rows, cols = tile.shape
    if found.shape not in ((1, 1), (rows, 1), (1, cols)):
        raise OperandShapeError(f"`pto.{name}`: {what} has the wrong shape", here(),
                                expected=f"a number, [1, 1], [{rows}, 1] or [1, {cols}]", found=f"[{found.shape[0]}, {found.shape[1]}]")
    _check(name, what, found, supported or (*FLOATS, *INTEGERS))
    return _in(found, wide)


def _check(name: str, what: str, tile: Operand, supported: tuple[DType, ...]) -> None:
    if tile.dtype not in supported:
        raise UnsupportedDTypeError(f"`pto.{name}`: {what} is {tile.dtype}", here(), expected=print_dtypes(supported),
                                    found=str(tile.dtype))


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and value == 0


def _refuse_zero_point(name: str, value: object, dtype: DType) -> None:
    if not _is_zero(value):
        raise OptionValueError(f"`pto.{name}`: {dtype} has no zero point", here(), expected="zero_point=0", found=repr(value))


FUNCTIONS = (quantize, dequantize)
