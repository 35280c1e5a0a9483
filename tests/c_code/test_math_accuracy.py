"""Functions of pto_math.h: specials, and exact ops against NumPy bit for bit; errors in ulp are in test_ulp.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pto_wsp.c.scalars import memory_type
from pto_wsp.ir.dtype import DType
from pto_wsp.ops.rounding import INTEGERS

from .conftest import Array, Compile, Library

FLOATS = ("exp", "log", "exp2", "log2", "tanh", "erf", "sin", "cos", "sqrt", "rsqrt", "sigmoid", "silu", "relu", "abs", "sign",
          "rint", "floor", "ceil", "recip")
PAIRS = ("maximum", "minimum", "floordiv", "mod")
DTYPES = (DType.F32, DType.F64, *INTEGERS, DType.BOOL)
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, 88.8, -87.4, 3.4e38, 1e-38]


def _loops() -> tuple[str, str]:
    heads, bodies = [], []

    def loop(name: str, result: str, source: str, call: str, second: bool = False) -> None:
        head = f"void loop_{name}({result} *y, const {source} *x{f', const {source} *z' if second else ''}, int64_t n)"
        heads.append(head + ";")
        bodies.append(f"{head} {{ for (int64_t i = 0; i < n; ++i) y[i] = {call}; }}")

    for name in FLOATS:
        loop(f"{name}_f32", "float", "float", f"pto_{name}_f32(x[i])")
    for dtype in (DType.F32, DType.F64, *INTEGERS):
        kind = memory_type(dtype)
        for name in (*PAIRS, *(("shl", "shr") if dtype in INTEGERS else ())):
            loop(f"{name}_{dtype}", kind, kind, f"pto_{name}_{dtype}(x[i], z[i])", second=True)
    for source in DTYPES:
        for target in DTYPES:
            loop(f"cast_{source}_{target}", memory_type(target), memory_type(source), f"pto_cast_{source}_{target}(x[i])")
    return "\n".join(heads), "\n".join(bodies)


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["native", "portable"])
def library(compile_c: Compile, request: pytest.FixtureRequest) -> Library:
    """Return a loop over every function."""
    heads, bodies = _loops()
    return compile_c(f'#include "pto_math.h"\n{bodies}\n', heads, portable=request.param)


def _apply(library: Library, name: str, *inputs: Array, result: Any = None) -> Array:
    inputs = tuple(np.ascontiguousarray(x) for x in inputs)
    out = np.empty(inputs[0].shape, result or inputs[0].dtype)
    getattr(library.lib, f"loop_{name}")(library.ffi.cast("void *", out.__array_interface__["data"][0]),
                                         *(library.ffi.cast("void *", x.__array_interface__["data"][0]) for x in inputs), out.size)
    return out


def _samples(step: int = 4093) -> Array:
    """Return every `step`-th float there is: all signs and exponents."""
    x = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return x[np.isfinite(x)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_specials(library: Library) -> None:
    x = np.array(SPECIAL * 3, np.float32)
    inf, nan = math.inf, math.nan
    expected = {"exp": {inf: inf, -inf: 0.0, 0.0: 1.0},
                "log": {0.0: -inf, inf: inf, -1.0: nan, -inf: nan, 1.0: 0.0},
                "exp2": {inf: inf, -inf: 0.0, 0.0: 1.0, -1.0: 0.5, 1e-45: 1.0},
                "log2": {0.0: -inf, inf: inf, -1.0: nan, -inf: nan, 1.0: 0.0, 0.5: -1.0, 1e-45: -149.0},
                "tanh": {inf: 1.0, -inf: -1.0}, "erf": {inf: 1.0, -inf: -1.0}, "sigmoid": {inf: 1.0, -inf: 0.0, 0.0: 0.5},
                "silu": {inf: inf, -inf: nan}, "sin": {inf: nan, -inf: nan}, "cos": {inf: nan, 0.0: 1.0}}
    for name, pairs in expected.items():
        found = _apply(library, f"{name}_f32", x)
        assert np.isnan(found[np.isnan(x)]).all(), name
        for at, want in pairs.items():
            np.testing.assert_array_equal(found[x == np.float32(at)], np.float32(want), err_msg=f"{name}({at})")
    for name in ("tanh", "erf", "sin"):
        assert np.array_equal(np.signbit(_apply(library, f"{name}_f32", x[:2])), [False, True]), f"{name}(-0.0)"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exact_functions_match_numpy_bit_for_bit(library: Library) -> None:
    x = np.concatenate([_samples(65521), np.array(SPECIAL, np.float32), np.arange(-40, 40, dtype=np.float32) / 2])
    one = np.float32(1)
    meaning = {"sqrt": np.sqrt(x), "rsqrt": one / np.sqrt(x), "recip": one / x, "relu": np.maximum(x, np.float32(0)), "abs": np.abs(x),
               "sign": np.sign(x), "rint": np.rint(x), "floor": np.floor(x), "ceil": np.ceil(x)}
    for name, want in meaning.items():
        found = _apply(library, f"{name}_f32", x)
        numbers = ~np.isnan(want)
        assert np.array_equal(np.isnan(found), np.isnan(want)), name
        np.testing.assert_array_equal(found[numbers], want[numbers], err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_pairs_of_floats_match_numpy(library: Library, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.5, -2.5, 1e30, 1e-30]),
                             rng.standard_normal(40) * 10]).astype(dtype.np)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    for name, meaning in zip(PAIRS, (np.maximum, np.minimum, np.floor_divide, np.mod), strict=True):
        np.testing.assert_array_equal(_apply(library, f"{name}_{dtype}", x, y), meaning(x, y), err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_pairs_of_integers_match_numpy_and_division_by_zero_gives_zero(library: Library, dtype: DType) -> None:
    limits, rng = np.iinfo(dtype.np), np.random.default_rng(1)
    edges = [limits.min, limits.min + 1, limits.max, 0, 1, 2, 3, 7, *((-1, -2, -7) if limits.min else ())]
    values = np.concatenate([np.array(edges, dtype.np), rng.integers(limits.min, limits.max, 40, dtype.np, endpoint=True)])
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    for name, meaning in zip(PAIRS, (np.maximum, np.minimum, np.floor_divide, np.mod), strict=True):
        np.testing.assert_array_equal(_apply(library, f"{name}_{dtype}", x, y), meaning(x, y), err_msg=name)
    width = dtype.nbytes * 8
    inside = (y >= 0) & (y < width)
    for name, shift in (("shl", np.left_shift), ("shr", np.right_shift)):
        want = np.where(inside, shift(x, np.where(inside, y, 0).astype(dtype.np)), 0).astype(dtype.np)
        np.testing.assert_array_equal(_apply(library, f"{name}_{dtype}", x, y), want, err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_casts_saturate_floats_and_wrap_integers(library: Library) -> None:
    rng = np.random.default_rng(2)
    for source in DTYPES:
        if source.is_float:
            x = np.array([*SPECIAL[:13], 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, 2.0**31, -2.0**31, 2.0**31 - 1, 2.0**63, -2.0**63,
                          1e30, -1e30], source.np)
        elif source is DType.BOOL:
            x = np.array([False, True] * 9)
        else:
            x = rng.integers(np.iinfo(source.np).min, np.iinfo(source.np).max, 99, source.np, endpoint=True)
        for target in DTYPES:
            found = _apply(library, f"cast_{source}_{target}", x, result=target.np)
            if source.is_float and target.is_integer:
                limits = np.iinfo(target.np)
                want = np.array([0 if math.isnan(v) else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v)
                                 for v in x.tolist()], target.np)
            else:
                want = x != 0 if target is DType.BOOL else x.astype(target.np)
            np.testing.assert_array_equal(found, want, err_msg=f"{source} to {target}")
