"""How ops are written in a golden.py: the line of NumPy that the entry gives, with its operands, dtypes and attributes in place.

>>> spell_dtype(DType.BF16)
'ml_dtypes.bfloat16'
"""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.expr.kernel import Attr
from pto_wsp.ops.entries.movement import picked
from pto_wsp.ops.rounding import default_mode
from pto_wsp.ops.spec import Cast, ColReduce, Elementwise, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.ops.tracing import Attrs
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType


def spell_op(op: str, operands: Sequence[str], types: Sequence[TileType], result: TileType, attrs: Attrs) -> str:
    """Return the NumPy expression of an op on operands that are spelled as names or calls."""
    entry = find(op)
    widens = isinstance(entry, Elementwise | RowReduce | ColReduce)
    if widens:
        operands = [f"{text}.astype(np.float32)" if kind.dtype.is_half else text for text, kind in zip(operands, types, strict=True)]
    names: dict[str, str] = {name: _spell_attr(value) for name, value in attrs}
    names |= {"shape": str(result.shape), "dtype": spell_dtype(result.dtype), "all": ", ".join(operands)}
    text = entry.form(attrs).numpy if isinstance(entry, Elementwise) else entry.numpy
    if "{picked}" in text:
        names["picked"] = ", ".join(_spell_slice(*axis) for axis in picked(attrs))
    if isinstance(entry, Cast):
        text = _cast_form(entry, types[0].dtype, result.dtype, attrs)
        names |= {"mode": repr(_attr(attrs, "mode") or default_mode(result.dtype)), "format": _spell_format(result.dtype)}
        names["saturate"] = str(_attr(attrs, "saturate") is not False if result.dtype.is_integer else bool(_attr(attrs, "saturate")))
    text = text.format(*operands, **names)
    return f"({text}).astype({spell_dtype(result.dtype)})" if widens and result.dtype.is_half else text


def spell_dtype(dtype: DType) -> str:
    """Return a dtype as golden.py names it."""
    name = dtype.np.name
    if dtype.is_foreign:
        return f"ml_dtypes.{name}"
    return f"np.{name}" if not dtype.is_bool else "np.bool_"


def _cast_form(entry: Cast, source: DType, target: DType, attrs: Attrs) -> str:
    """Return which line of NumPy converts as the attributes say."""
    mode, saturate = _attr(attrs, "mode"), bool(_attr(attrs, "saturate"))
    if target.is_bool:
        return entry.numpy_to_mask
    if target.is_integer:
        if source.is_real:
            return entry.numpy_to_integer
        return entry.numpy_between if saturate and not source.is_bool else entry.numpy
    plain = not saturate and mode in (None, "rint")
    exact = source.is_real and target.is_float and _digits(target) >= _digits(source)
    nearest = plain and (source is DType.F32 or (target.is_float and not target.is_half) or source.is_bool)
    widens = exact and not saturate and target.nbytes > source.nbytes
    return entry.numpy if widens or nearest else entry.numpy_to_float


def _digits(dtype: DType) -> int:
    return dtype.format.digits


def _spell_format(dtype: DType) -> str:
    if not dtype.is_real:
        return ""
    kind = dtype.format
    return f"{kind.digits}, {kind.low}, {kind.largest!r}, {kind.infinite}"


def _spell_slice(first: int, count: int, step: int) -> str:
    stop = first + count * step
    text = f"{first}:{stop if stop >= 0 else ''}"
    return text if step == 1 else f"{text}:{step}"


def _spell_attr(value: Attr) -> str:
    return spell_dtype(value) if isinstance(value, DType) else repr(value)


def _attr(attrs: Attrs, wanted: str) -> Attr:
    return next((value for name, value in attrs if name == wanted), None)
