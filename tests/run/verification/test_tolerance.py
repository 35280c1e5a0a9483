"""What counts as equal, by dtype: by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp.ir.dtype import DType
from pto_wsp.run.verify import Tolerance, difference

DEFAULT = Tolerance()


def off(found: list[float], expected: list[float], dtype: DType = DType.F32, tolerance: Tolerance = DEFAULT) -> list[int]:
    """Return how many elements are further off than allowed, each alone in the tensor."""
    return [difference(np.array([a], dtype.np), np.array([b], dtype.np), dtype, tolerance).n_wrong
            for a, b in zip(found, expected, strict=True)]


def test_specials() -> None:
    inf, nan = np.inf, np.nan
    assert off([nan, inf, -inf, 0.0], [nan, inf, -inf, -0.0]) == [0, 0, 0, 0]
    assert off([nan, inf, -inf, 1, 3e38], [1, 1, inf, nan, inf]) == [1, 1, 1, 1, 1]
    assert off([nan, 3e38], [1, inf], tolerance=Tolerance(1e9, 1e9)) == [1, 1]     # whatever is allowed


@pytest.mark.parametrize(("dtype", "ulps"), [(DType.F64, 64), (DType.F32, 64), (DType.F16, 4), (DType.BF16, 4), (DType.FP8E4M3, 1)])
def test_units_of_the_element_and_of_the_largest(dtype: DType, ulps: int) -> None:
    eps = {DType.F64: 2.0 ** -52, DType.F32: 2.0 ** -23, DType.F16: 2.0 ** -10, DType.BF16: 2.0 ** -7, DType.FP8E4M3: 2.0 ** -3}[dtype]
    # the element is the largest: twice the units
    assert off([1 + 2 * ulps * eps, 1 + (2 * ulps + 1) * eps, 1 + (2 * ulps + 2) * eps], [1, 1, 1], dtype) == [0, 1, 1]
    beside = np.array([0.25, 2], dtype.np)       # allowed beside 2: units of 2.25
    near, far = (np.array([0.25 + units * eps, 2], dtype.np) for units in (2.25 * ulps, 2.5 * ulps + 0.5))
    assert difference(near, beside, dtype, DEFAULT).n_wrong == 0
    assert difference(far, beside, dtype, DEFAULT).n_wrong == 1


def test_an_infinity_beside_allows_nothing_more() -> None:
    found, expected = np.array([1.1, np.inf], np.float32), np.array([1, np.inf], np.float32)
    assert difference(found, expected, DType.F32, DEFAULT).n_wrong == 1


def test_a_filling_allows_nothing_more_where_it_is_right() -> None:
    expected = np.array([1, 2, -1e30, -1e30], np.float32)
    found = np.array([1.1, 2, -1e30, -1e30], np.float32)
    assert difference(found, expected, DType.F32, DEFAULT).n_wrong == 1
    assert difference(found[:3], expected[:3], DType.F32, DEFAULT).n_wrong == 0       # one of its kind: a sum may have had such a part
    wrong = np.array([1.1, 2, -1e30, -1.1e30], np.float32)
    assert difference(wrong, expected, DType.F32, DEFAULT).first == (3,)


def test_whole_numbers_and_masks_are_equal() -> None:
    wide = np.array([1 << 62, 5], np.int64)
    found = difference(wide + np.array([1, 0]), wide, DType.I64, Tolerance(1.0, 100.0))     # no double tells them apart
    assert (found.n_wrong, found.first) == (1, (0,))
    assert difference(np.array([True, False]), np.array([True, True]), DType.BOOL, DEFAULT).first == (1,)


def test_first_and_worst() -> None:
    expected = np.full((3, 4), 2, np.float32)
    found = expected.copy()
    found[0, 3], found[1, 2], found[2, 0] = 2.25, 3, 2.5
    one = difference(found, expected, DType.F32, Tolerance(0.0625, 0.25))      # 0.375 each
    assert (one.n_elements, one.n_wrong, one.first, one.worst, one.error, one.allowed) == (12, 2, (1, 2), (1, 2), 1.0, 0.375)
    assert one.first_allowed == 0.375
    exact = difference(found, expected, DType.F32, Tolerance(0.0, 0.0))
    assert (exact.n_wrong, exact.first, exact.worst) == (3, (0, 3), (1, 2))
    assert difference(expected, expected, DType.F32, DEFAULT).worst is None
