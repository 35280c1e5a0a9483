"""What it means to bring a number to another dtype, on NumPy: rounding modes, saturation, and the formats that NumPy rounds to twice.

>>> convert(np.array([2.5, -1e9]), DType.I8, "rint")
array([   2, -128], dtype=int8)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pto_wsp.ops.dtypes import Array
from pto_wsp.types.dtype import DType


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
    """Return how a float is rounded where no mode is given: its fraction dropped for an integer, else to the nearest, half to even."""
    return "trunc" if target.is_integer else "rint"


def convert(x: Array, target: DType, mode: str | None = None, saturate: bool | None = None) -> Array:
    """Return x in the dtype `target`; see `pto.cast` for what None means."""
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
    top = float(limits.max) + 1.0   # exact or rounded up to it: a power of two
    if saturate:
        inside = np.where((whole >= limits.min) & (whole < top), whole, 0.0).astype(target.np)
        above = np.where(whole >= top, target.np.type(limits.max), inside)
        return np.where(whole < limits.min, target.np.type(limits.min), above)
    rest = np.fmod(np.where(np.isfinite(whole), whole, 0.0), 2.0 ** 64)
    bits = np.abs(rest).astype(np.uint64)
    return np.where(rest < 0, np.uint64(0) - bits, bits).astype(target.np)


def _to_float(x: Array, target: DType, mode: str, saturate: bool) -> Array:
    """Round doubles to a format once, in units of the last place of the result."""
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
    """Return integers as doubles; of those that no double holds, the odd one of two neighbours, so that a second rounding is right."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    one = x.dtype.type(1)
    step = x.dtype.type(1 << 11)
    low = x & (step - one)
    few = (x - low) | np.where(low != 0, step, x.dtype.type(0))
    large = x.dtype.type(1 << 53)
    fits = x < large if x.dtype.kind == "u" else (x < large) & (x > -large)
    return np.where(fits, x, few).astype(np.float64)
