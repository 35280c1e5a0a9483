"""How far an artifact may be from the NumPy meaning, by dtype, and the comparison of two arrays.

|found - expected| <= rtol * |expected| + atol. Where a user says neither, both are some units in the last place: of the element, and of the
largest element of the tensor, because a sum that nearly cancels keeps the error of what was added up. A number that stands in several
places, and is right in all of them, is no such sum but a filling (the -1e30 of a mask): it makes nothing else larger. Whole numbers and
masks are equal; NaN equals NaN, an infinity itself alone, 0.0 and -0.0 each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from pto_wsp.errors import BindingError
from pto_wsp.runtime.bound.binding import Array
from pto_wsp.source import here
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

# Units in the last place. The difference is in the order of additions, in products rounded once (FMA) or twice, and in functions: 8 ulp
# here (see `ulp` in the op table), 4 in NumPy. Long sums and chains of tasks add these up, roughly by the root of their length.
# A half is computed in f32 and rounded where it is stored: a tie that falls to the other side, some tasks on.
ULPS: Mapping[DType, int] = {dtype: 4 if dtype.is_half else 64 for dtype in DType if dtype.is_float}
_STORED_ULPS = 1     # of fp8, which is only stored: the same tie, once


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is allowed: `rtol` of the element, and `atol`, in the tensor's numbers. None: by dtype."""

    rtol: float | None = None
    atol: float | None = None


def read_tolerance(rtol: object, atol: object) -> Tolerance:
    """Return what a user allows.

    Raises: R102 for what is no number >= 0.
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):  # type: ignore[operator]
            raise BindingError(f"verify() takes a number as {name}", here(), expected="a number >= 0, or None: by dtype", found=repr(value))
    return Tolerance(*(None if value is None else float(value) for value in (rtol, atol)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Difference:
    """What two arrays differ by. `worst`: the element that uses most of what it is allowed, its `error` and what it is `allowed`; None
    where all are the same. `first`: the first of `n_wrong` elements that are further off, None where none is."""

    n_elements: int
    n_wrong: int = 0
    first: tuple[int, ...] | None = None
    first_allowed: float = 0.0
    worst: tuple[int, ...] | None = None
    error: float = 0.0
    allowed: float = 0.0


def difference(found: Array, expected: Array, dtype: DType, tolerance: Tolerance) -> Difference:
    """Compare two arrays of one shape and of this dtype."""
    with np.errstate(all="ignore"):
        at = np.argwhere((found != expected) & ~(np.not_equal(found, found) & np.not_equal(expected, expected)))     # NaN is not itself
        if not len(at):
            return Difference(found.size)
        places = tuple(at.T)
        got, want = found[places].astype(np.float64), expected[places].astype(np.float64)
        error = np.where(np.isnan(got - want), np.inf, np.abs(got - want))
        allowed = _allowed(want, found, expected, dtype, tolerance)
        wrong = np.flatnonzero(~(error <= allowed)) if dtype.is_real else np.arange(len(at))
        share = np.where(allowed > 0, error / allowed, np.inf)
        worst = int(np.argmax(np.where(share == share.max(), error, -1.0)))
    first = int(wrong[0]) if len(wrong) else None
    return Difference(found.size, len(wrong), None if first is None else _index(at[first]), 0.0 if first is None else float(allowed[first]),
                      _index(at[worst]), float(error[worst]), float(allowed[worst]))


def _allowed(want: Array, found: Array, expected: Array, dtype: DType, tolerance: Tolerance) -> Array:
    """Return what each of the elements `want` of `expected` is allowed: nothing for whole numbers, NaN and infinities."""
    if not dtype.is_real:
        return np.zeros(len(want))
    limits: np.finfo[Any] = ml_dtypes.finfo(dtype.np)  # type: ignore[no-untyped-call]
    unit = ULPS.get(dtype, _STORED_ULPS) * float(limits.eps)
    rtol = unit if tolerance.rtol is None else tolerance.rtol
    atol = tolerance.atol
    if atol is None:
        atol = max(unit * _largest(found, expected), float(limits.smallest_subnormal))
    return np.where(np.isfinite(want), rtol * np.abs(want) + atol, 0.0)


def _largest(found: Array, expected: Array) -> float:
    """Return the largest number of a tensor that is not a filling."""
    values, at, counts = np.unique(np.abs(expected.astype(np.float64)), return_inverse=True, return_counts=True)
    is_right = np.bincount(at.ravel(), (found == expected).ravel(), len(values)) == counts
    left = values[np.isfinite(values) & ~(is_right & (counts > 1))]
    return float(left.max()) if len(left) else 0.0


def _index(row: Array) -> tuple[int, ...]:
    return tuple(int(k) for k in row)
