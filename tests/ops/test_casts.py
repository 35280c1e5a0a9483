"""Conversions by every mode against the neighbours found among all values of a format, and quantised tiles by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp import In, Out, Tile, kernel, pto
from pto_wsp.errors import PtoError
from pto_wsp.ir.dtype import DType
from pto_wsp.ops.rounding import INTEGERS, MODES, convert

Array = npt.NDArray[Any]
NARROW = (DType.F16, DType.BF16, DType.FP8E4M3, DType.FP8E5M2)


def values_of(dtype: DType) -> Array:
    """Return every finite value of a narrow format, in order, -0.0 left out."""
    bits = np.arange(1 << 8 * dtype.nbytes, dtype=np.uint32).astype(f"u{dtype.nbytes}")
    with np.errstate(invalid="ignore"):
        wide = bits.view(dtype.np).astype(np.float64)
    return np.unique(wide[np.isfinite(wide)] + 0.0)


def digit_of(value: float, dtype: DType) -> int:
    """Return the last digit of a value of the format."""
    return int(np.array(value).astype(dtype.np).view(f"u{dtype.nbytes}")) & 1


def by_neighbours(x: float, values: Array, dtype: DType, mode: str) -> float:
    """Return x rounded by looking up its neighbours; beyond the last one lies what the format continues with."""
    if math.isnan(x):
        return math.nan
    top = float(values[-1])
    beyond = math.inf if dtype.format.infinite else math.nan
    if abs(x) >= top and abs(x) != top:
        if math.isinf(x):
            return math.copysign(beyond, x)
        step = top - float(values[-2])
        near = abs(x) - top < step / 2 or (abs(x) - top == step / 2 and mode == "rint" and digit_of(top, dtype) == 0)
        inward = {"rint": near, "round": abs(x) - top < step / 2, "trunc": abs(x) < math.inf, "odd": True,
                  "floor": x > 0, "ceil": x < 0}[mode]
        past_one = {"odd": not dtype.format.infinite and abs(x) - top >= step}.get(mode, False)
        return math.copysign(top, x) if inward or past_one else math.copysign(beyond, x)
    at = int(np.searchsorted(values, x))
    if values[at] == x:
        return x
    low, high = float(values[at - 1]), float(values[at])
    match mode:
        case "floor":
            found = low
        case "ceil":
            found = high
        case "trunc":
            found = low if x > 0 else high
        case "odd":
            found = low if digit_of(low, dtype) else high
        case _:
            nearer = low if x - low < high - x else high
            even = low if digit_of(low, dtype) == 0 else high
            outer = high if x > 0 else low
            found = nearer if x - low != high - x else even if mode == "rint" else outer
    return math.copysign(found, x)


def tricky(values: Array) -> Array:
    """Return values, points between neighbours, and points next to those."""
    rng = np.random.default_rng(0)
    some = np.concatenate([values[:3], values[-3:], rng.choice(values, 150), values[np.argsort(np.abs(values))[:8]]])
    at = np.clip(np.searchsorted(values, some), 0, values.size - 2)
    low, high = values[at], values[at + 1]
    middle = low + (high - low) / 2
    top, step = values[-1], values[-1] - values[-2]
    past = [sign * (top + part * step) for part in (0.25, 0.5, 0.75, 1.0, 4.0) for sign in (1, -1)]
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, *past]
    near = [np.nextafter(middle, low), np.nextafter(middle, high), low + (high - low) / 4, low + 3 * (high - low) / 4]
    return np.concatenate([low, middle, *near, edges])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_doubles_become_the_right_neighbour(dtype: DType, mode: str) -> None:
    values = values_of(dtype)
    x = tricky(values)
    found = convert(x, dtype, mode).astype(np.float64)
    expected = np.array([by_neighbours(v, values, dtype, mode) for v in x.tolist()])
    np.testing.assert_array_equal(found, expected)
    assert np.array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(x)[~np.isnan(found)])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_the_default_is_what_numpy_makes_of_f32(dtype: DType) -> None:
    with np.errstate(over="ignore"):
        x = tricky(values_of(dtype)).astype(np.float32)
        np.testing.assert_array_equal(convert(x, dtype).astype(np.float64), x.astype(dtype.np).astype(np.float64))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_saturation_ends_at_the_largest_number(dtype: DType, mode: str) -> None:
    top = dtype.format.largest
    x = np.array([1e30 if top < 1e30 else 3.4e38, -3.4e38, math.inf, -math.inf, math.nan, 1.0, top])
    assert convert(x, dtype, mode, True).astype(np.float64)[[0, 1, 2, 3, 5, 6]].tolist() == [top, -top, top, -top, 1.0, top]
    assert np.isnan(convert(x, dtype, mode, True).astype(np.float64)[4])


WHOLE = {"rint": [2, 2, -2, -2, 3, 0], "round": [2, 3, -2, -3, 4, 0], "floor": [1, 2, -2, -3, 3, -1], "ceil": [2, 3, -1, -2, 4, 0],
         "trunc": [1, 2, -1, -2, 3, 0], "odd": [1, 3, -1, -3, 3, -1]}


@pytest.mark.parametrize("source", [DType.F32, DType.F64, DType.F16, DType.BF16], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_floats_become_whole_by_mode(mode: str, source: DType) -> None:
    x = np.array([1.5, 2.5, -1.5, -2.5, 3.25, -0.25]).astype(source.np)
    expected = [3 if mode == "rint" and v == 3.25 else w for v, w in zip(x.astype(float).tolist(), WHOLE[mode], strict=True)]
    if mode == "round":
        expected[4] = 3
    assert convert(x, DType.I32, mode).tolist() == expected


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_floats_wrap_where_asked(target: DType) -> None:
    bits = 8 * target.nbytes
    x = np.array([300.9, -300.9, 2.0 ** 32 + 5, -2.0 ** 40 - 4096, 2.0 ** 63, 1.5 * 2.0 ** 64, -2.0 ** 70 - 2.0 ** 30, math.inf,
                  math.nan])
    low = -(1 << bits - 1) if target.holds(-1) else 0
    expected = [(math.trunc(v) - low) % (1 << bits) + low if math.isfinite(v) else 0 for v in x.tolist()]
    assert convert(x, target, None, False).tolist() == expected


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_saturate_where_asked(source: DType, target: DType) -> None:
    own, limits = np.iinfo(source.np), np.iinfo(target.np)
    x = np.array([own.min, own.max, 0, 1, 100], source.np)
    assert convert(x, target, None, True).tolist() == [min(max(int(v), int(limits.min)), int(limits.max)) for v in x]


@pytest.mark.parametrize("source", [DType.I64, DType.U64], ids=str)
def test_large_integers_round_once(source: DType) -> None:
    values = values_of(DType.BF16)
    x = [2 ** 62 + 2 ** 54 + 1, 2 ** 62 + 2 ** 54 - 1, 2 ** 62 + 2 ** 54, 2 ** 62 + 3 * 2 ** 54, 2 ** 53 + 2 ** 45 + 1]
    x += [-v for v in x] if source is DType.I64 else []
    for v in x:
        at = int(np.searchsorted(values, float(v)))
        near = [int(values[k]) for k in range(at - 2, at + 2)]
        best = min(near, key=lambda one: (abs(one - v), digit_of(float(one), DType.BF16)))
        assert int(convert(np.array([v], source.np), DType.BF16)[0]) == best


# ---- quantised tiles ----

def run(body: Any, **args: Any) -> None:
    """Run a kernel at once, on NumPy."""
    kernel(body).run(**args)


def test_quantize_per_row_and_back() -> None:
    def body(x: In[Tile[2, 4, DType.F32]], s: In[Tile[2, 1, DType.F32]], q: Out[Tile[2, 4, DType.I8]],
             y: Out[Tile[2, 4, DType.F32]]) -> None:
        whole = pto.quantize(x, s, zero_point=3)
        pto.store(q, whole)
        pto.store(y, pto.dequantize(whole, s, 3))
    x = np.array([[0.0, 1.0, -1.25, 1000.0], [0.5, -0.5, 0.25, -1000.0]], np.float32)
    s = np.array([[0.5], [0.25]], np.float32)
    q, y = np.zeros((2, 4), np.int8), np.zeros((2, 4), np.float32)
    run(body, x=x, s=s, q=q, y=y)
    assert q.tolist() == [[3, 5, 1, 127], [5, 1, 4, -128]]
    assert y.tolist() == [[0.0, 1.0, -1.0, 62.0], [0.5, -0.5, 0.25, -32.75]]


def test_quantize_of_halves_divides_in_f32() -> None:
    def body(x: In[Tile[1, 2, DType.BF16]], q: Out[Tile[1, 2, DType.U8]], y: Out[Tile[1, 2, DType.BF16]]) -> None:
        whole = pto.quantize(x, 0.1, 7, DType.U8)
        pto.store(q, whole)
        pto.store(y, pto.dequantize(whole, 0.1, 7, DType.BF16))
    x = np.array([[1.0, -0.5]]).astype(DType.BF16.np)
    q, y = np.zeros((1, 2), np.uint8), np.zeros((1, 2), DType.BF16.np)
    run(body, x=x, q=q, y=y)
    assert q.tolist() == [[17, 2]]
    assert y.astype(float).tolist() == [[1.0, -0.5]]


def test_quantize_to_fp8_saturates() -> None:
    def body(x: In[Tile[1, 3, DType.F32]], q: Out[Tile[1, 3, DType.FP8E4M3]]) -> None:
        pto.store(q, pto.quantize(x, 2.0, dtype=DType.FP8E4M3))
    q = np.zeros((1, 3), DType.FP8E4M3.np)
    run(body, x=np.array([[3.0, 1e9, -1e9]], np.float32), q=q)
    assert q.astype(float).tolist() == [[1.5, 448.0, -448.0]]


@pytest.mark.parametrize("wrong, words", [
    (lambda x, s: pto.quantize(x, s, dtype=DType.F16), "does not give f16"), (lambda x, s: pto.quantize(x, x), "scale has the wrong shape"),
    (lambda x, s: pto.quantize(x, 1.0, 1, DType.FP8E5M2), "no zero point"), (lambda x, s: pto.dequantize(x, 1.0), "q is f32"),
    (lambda x, s: pto.dequantize(pto.quantize(x, 1.0), pto.cast(s, DType.I32)), "scale is i32")])
def test_quantize_refuses(wrong: Any, words: str) -> None:
    def body(x: In[Tile[2, 4, DType.F32]], s: In[Tile[2, 1, DType.F32]]) -> None:
        wrong(x, s)
    with pytest.raises(PtoError, match=words):
        run(body, x=np.zeros((2, 4), np.float32), s=np.zeros((2, 1), np.float32))
