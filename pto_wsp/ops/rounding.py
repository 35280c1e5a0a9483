"""Define which dtypes kernels compute on, and convert NumPy arrays between dtypes.

Conversions cover the rounding modes, saturation, and the formats for which NumPy would round twice.

>>> convert(np.array([2.5, -1e9]), DType.I8, "rint")
array([   2, -128], dtype=int8)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.ir.dtype import DType, Family

Array: TypeAlias = npt.NDArray[Any]

_WHOLE_FLOATS = tuple(sorted((dtype for dtype in DType if dtype.is_float and not dtype.is_half), key=lambda dtype: dtype.nbytes))
FLOATS = (*_WHOLE_FLOATS, *(dtype for dtype in DType if dtype.is_half))
INTEGERS = tuple(dtype for dtype in DType if dtype.is_integer)
UNSIGNED = tuple(dtype for dtype in INTEGERS if dtype.family is Family.UINT)
INDICES = tuple(dtype for dtype in DType if dtype.is_index)
FOLDED_FLOATS, FOLDED_INTEGERS = _WHOLE_FLOATS, INDICES     # computed on numbers when a kernel is compiled
NUMBERS = (*FLOATS, *INTEGERS)
MASKS = tuple(dtype for dtype in DType if dtype.is_bool)
BITS = (*INTEGERS, *MASKS)
COMPUTED = (*NUMBERS, *MASKS)
STORAGE = tuple(dtype for dtype in DType if dtype.is_storage)   # only loaded, stored, moved and cast
ALL = (*COMPUTED, *STORAGE)
MATMUL_RESULT: Mapping[DType, DType] = {dtype: result for dtype in ALL if (result := dtype.accumulates_in) is not None}


def print_dtypes(dtypes: tuple[DType, ...]) -> str:
    """Return a readable list: `f32, f64`."""
    return ", ".join(str(dtype) for dtype in dtypes)


def _away(x: Array) -> Array:
    whole = np.trunc(x)
    result: Array = np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)
    return result


def _odd(x: Array) -> Array:
    whole = np.trunc(x)
    even = (whole != x) & (np.fmod(whole, 2.0) == 0)
    result: Array = np.where(even, whole + np.copysign(1.0, x), whole)
    return result


MODES: Mapping[str, Callable[[Array], Array]] = {
    "rint": np.rint, "round": _away, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "odd": _odd,
}


def default_mode(target: DType) -> str:
    """Return the rounding mode of a float conversion without a mode: truncation to integers, otherwise to nearest, ties to even."""
    return "trunc" if target.is_integer else "rint"


def convert(x: Array, target: DType, mode: str | None = None, saturate: bool | None = None) -> Array:
    """Return x in the dtype `target`; see `pto.cast` for the meaning of None."""
    source = DType.from_numpy(x.dtype)
    with np.errstate(all="ignore"):
        if target.is_bool:
            mask: Array = np.not_equal(x.astype(np.float64) if source.is_real else x, 0)
            return mask
        if source.is_real:
            wide = x.astype(np.float64)
            rule = mode or default_mode(target)
            if target.is_integer:
                return _to_integer(MODES[rule](wide), target, saturate is not False)
            return _to_float(wide, target, rule, bool(saturate))
        if target.is_integer:
            return _between(x, source, target).astype(target.np) if saturate else x.astype(target.np)
        if target.is_float and not target.is_half:
            return x.astype(target.np)
        return _to_float(_few_digits(x), target, "rint", bool(saturate))


def _to_integer(whole: Array, target: DType, saturate: bool) -> Array:
    limits = np.iinfo(target.np)
    top = float(limits.max) + 1.0   # a power of two, exact or rounded up to
    if saturate:
        inside = np.where((whole >= limits.min) & (whole < top), whole, 0.0).astype(target.np)
        above = np.where(whole >= top, target.np.type(limits.max), inside)
        return np.where(whole < limits.min, target.np.type(limits.min), above)
    rest = np.fmod(np.where(np.isfinite(whole), whole, 0.0), 2.0 ** 64)
    bits = np.abs(rest).astype(np.uint64)
    return np.where(rest < 0, np.uint64(0) - bits, bits).astype(target.np)


def _to_float(x: Array, target: DType, mode: str, saturate: bool) -> Array:
    """Round doubles once to a format, in units of the last place of the result."""
    kind = target.format
    if saturate:
        x = np.clip(x, -kind.largest, kind.largest)
    if target.is_double:
        return x
    _, exponent = np.frexp(x)
    unit = np.maximum(exponent - 1, kind.low) - kind.digits + 1
    y = np.ldexp(MODES[mode](np.ldexp(x, -unit)), unit)
    # rounding towards zero stops at the largest finite number
    outward = (mode in ("rint", "round")) | ((mode == "floor") & (x < 0)) | ((mode == "ceil") & (x > 0))
    past = np.where(np.isfinite(x) & ~outward, kind.largest, np.inf if kind.infinite else np.nan)
    return np.where(np.abs(y) > kind.largest, np.copysign(past, x), y).astype(target.np)


def _between(x: Array, source: DType, target: DType) -> Array:
    limits = np.iinfo(target.np)
    own = limits if source.is_bool else np.iinfo(source.np)
    if source.is_bool:
        return x
    result: Array = np.clip(x, source.np.type(max(limits.min, own.min)), source.np.type(min(limits.max, own.max)))
    return result


def _few_digits(x: Array) -> Array:
    """Return integers as doubles.

    For integers that are not exact in a double, choose the odd one of the two neighbours, so that a second rounding is correct.
    """
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    unit = x.dtype.type(1)
    step = x.dtype.type(1 << 11)
    low = x & (step - unit)
    few = (x - low) | np.where(low != 0, step, x.dtype.type(0))
    large = x.dtype.type(1 << 53)
    fits = x < large if x.dtype.kind == "u" else (x < large) & (x > -large)
    return np.where(fits, x, few).astype(np.float64)
