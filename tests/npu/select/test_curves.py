"""Functions of several instructions: f32 within some ulp at every magnitude, halves rounded once, edges as NumPy has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, pto
from pto_wsp.npu.rules import curves
from pto_wsp.resources import csrc_dir
from tests.npu.select.numbers import SHAPE, check, numbers

F32 = DType.F32
ULP = 2.0 ** -23
EDGES = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e30, -1e30, 2.5], np.float32)


@pytest.mark.parametrize("op", [pto.tanh, pto.sigmoid, pto.silu, pto.erf, pto.gelu], ids=lambda op: op.__name__)
def test_functions_keep_their_relative_accuracy(op: Callable[..., Any]) -> None:
    check(op, numbers(F32), out=(*SHAPE, F32), rtol=16 * ULP, atol=1e-44)   # a square in f32 as an exponent up to 50


def test_gelu_by_tanh() -> None:
    check(lambda x: pto.gelu(x, approximate="tanh"), numbers(F32), out=(*SHAPE, F32), rtol=64 * ULP, atol=2e-37)   # e^88 is the largest


@pytest.mark.parametrize("op", [pto.exp2, pto.log2], ids=lambda op: op.__name__)
def test_powers_of_two(op: Callable[..., Any]) -> None:
    check(op, numbers(F32), out=(*SHAPE, F32), rtol=16 * ULP, atol=2 * ULP)
    check(op, np.resize(EDGES, (2, 16)), out=(2, 16, F32), rtol=2 * ULP)
    whole = np.arange(-149, 128, dtype=np.float32)[None]
    check(op, whole if op is pto.exp2 else np.exp2(whole), out=(1, whole.size, F32))


@pytest.mark.parametrize("op", [pto.sin, pto.cos], ids=lambda op: op.__name__)
def test_angles_up_to_millions(op: Callable[..., Any]) -> None:
    x = numbers(F32)
    x[5] *= 1000
    x[6] = np.float32(np.pi / 2) * np.arange(40)     # near the zeros, where only the reduction's exactness helps
    x[np.abs(x) > 6e6] = 3.0e6
    x[0, 2:5] = [np.inf, -np.inf, np.nan]
    check(op, x, out=(*SHAPE, F32), rtol=8 * ULP, atol=2e-9)


@pytest.mark.parametrize("op", [pto.floor, pto.ceil, pto.round, pto.sign], ids=lambda op: op.__name__)
def test_whole_numbers_are_exact(op: Callable[..., Any]) -> None:
    for dtype in (F32, DType.F16, DType.BF16):
        check(op, numbers(dtype), out=(*SHAPE, dtype))


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_halves_are_rounded_once(dtype: DType) -> None:
    check(pto.tanh, numbers(dtype), out=(*SHAPE, dtype), rtol=float(np.finfo(np.float16).eps) * (1 if dtype is DType.F16 else 8))


def test_powers() -> None:
    check(pto.pow, np.abs(numbers(F32)), np.clip(numbers(F32, seed=1), -20, 20), out=(*SHAPE, F32), rtol=8 * ULP)
    first, second = (each.copy() for each in np.meshgrid(EDGES, EDGES))
    check(pto.pow, first, second, out=(16, 16, F32), rtol=8 * ULP)


@pytest.mark.parametrize("op", [pto.floordiv, pto.mod], ids=lambda op: op.__name__)
def test_floats_divide_with_a_floor(op: Callable[..., Any]) -> None:
    check(op, numbers(F32), numbers(F32, seed=1)[::-1].copy(), out=(*SHAPE, F32))
    first, second = (each.copy() for each in np.meshgrid(EDGES, EDGES))
    check(op, first, second, out=(16, 16, F32))


@pytest.mark.parametrize("dtype", [DType.I32, DType.I16, DType.I8, DType.U8, DType.U16])
@pytest.mark.parametrize("op", [pto.floordiv, pto.mod], ids=lambda op: op.__name__)
def test_integers_divide_with_a_floor_and_give_0_by_0(op: Callable[..., Any], dtype: DType) -> None:
    x, y, limits = numbers(dtype), numbers(dtype, seed=1), np.iinfo(dtype.np)
    y[2:4] = np.random.default_rng(2).integers(max(-4, limits.min), 5, (2, 40)).astype(dtype.np)
    x[:, 0], x[:, 1] = limits.min, limits.max
    y[5:, 0], y[4], y[6, 4:] = -1 if limits.min else 1, limits.max, limits.min
    check(op, x, y, out=(*SHAPE, dtype))


@pytest.mark.parametrize("coefficients", [curves.TANH, curves.ERF_NEAR, curves.ERF_FAR, curves.NORMAL_TAIL, curves.SIN, curves.COS])
def test_coefficients_are_those_of_the_c_runtime(coefficients: tuple[float, ...]) -> None:
    header = (csrc_dir() / "include" / "math" / "pto_functions.h").read_text()
    there = {float.fromhex(text) for text in re.findall(r"-?0x[0-9a-f.]+p[-+]?\d+", header)} | {0.5}
    assert set(coefficients) <= there
