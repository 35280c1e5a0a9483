"""How far two executors may differ: one table, by dtype, with the reason; and the comparison that uses it.

Exact ops (moves, integers, masks, comparisons, + - * / sqrt, casts, minimum, maximum, abs, neg, floor, ceil, round) agree bit for
bit. Two things are left open even there: the payload and sign of a NaN, and which zero the larger of 0.0 and -0.0 is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pto_wsp.ir.dtype import DType

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """|found - expected| <= ulps * eps * (|expected| + scale); `scale` is the size of what was added up."""

    ulps: float
    reason: str


# Integers and masks have no entry: they are exact, sums and products included, because wrapping addition is associative.
SUMS = {
    DType.F32: Tolerance(16, "up to 64 terms a sum in these tests, added in another order: half an ulp for each level of either tree, "
                             "with room for products rounded once (FMA) or twice"),
    DType.F64: Tolerance(16, "as f32"),
    DType.F16: Tolerance(1, "added up in f32 and rounded once: half an ulp each, where the two sums straddle a tie"),
    DType.BF16: Tolerance(1, "as f16"),
}
FUNCTIONS = {
    DType.F32: Tolerance(10, "our functions keep to 8 ulp (see `ulp` in the op table), NumPy's f32 functions to 4"),
    DType.F64: Tolerance(8, "libm here and NumPy's own kernels keep to 1-4 ulp; sigmoid and silu add two roundings"),
    DType.F16: Tolerance(1, "computed in f32 and rounded once: half an ulp each, where the two results straddle a tie"),
    DType.BF16: Tolerance(1, "as f16"),
}
PRODUCTS = {
    DType.F32: Tolerance(32, "24 factors in these tests, multiplied in another order: half an ulp each in either order"),
    DType.F64: Tolerance(32, "as f32"),
    DType.F16: Tolerance(1, "multiplied in f32 and rounded once: half an ulp each, where the two products straddle a tie"),
    DType.BF16: Tolerance(1, "as f16"),
}


def assert_identical(found: Array, expected: Array, where: object = "", *, zeros_alike: bool = False) -> None:
    """Raise AssertionError unless the arrays have the same bits; NaN is NaN. `zeros_alike`: 0.0 and -0.0 count as equal."""
    assert found.shape == expected.shape and found.dtype == expected.dtype, where
    if found.dtype.kind not in "iub":
        bits = np.dtype(f"i{found.dtype.itemsize}")
        same = np.ascontiguousarray(found).view(bits) == np.ascontiguousarray(expected).view(bits)
        wide, true = found.astype(np.float64), expected.astype(np.float64)
        same |= np.isnan(wide) & np.isnan(true)
        if zeros_alike:
            same |= (wide == 0) & (true == 0)
    else:
        same = found == expected
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        raise AssertionError(f"{where}: {int((~same).sum())} of {same.size} elements differ, first at {at}: "
                             f"{found[at]!r}, expected {expected[at]!r}")


def assert_near(found: Array, expected: Array, tolerance: Tolerance, where: object = "", *, scale: float = 0.0) -> None:
    """Raise AssertionError unless the arrays agree within the tolerance, NaN and infinities exactly."""
    assert found.shape == expected.shape and found.dtype == expected.dtype, where
    limits = ml_dtypes.finfo(found.dtype)
    eps, tiny = float(limits.eps), float(limits.tiny if found.dtype.itemsize > 2 else limits.smallest_subnormal)
    wide, true = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(true)
    same = np.where(finite, False, (wide == true) | (np.isnan(wide) & np.isnan(true)))
    with np.errstate(all="ignore"):
        same |= finite & (np.abs(wide - true) <= tolerance.ulps * eps * (np.abs(true) + scale) + tiny)
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        raise AssertionError(f"{where}: {int((~same).sum())} of {same.size} elements are off, first at {at}: "
                             f"{found[at]!r}, expected {expected[at]!r} within {tolerance.ulps} ulp")
