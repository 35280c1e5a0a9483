# ruff: noqa: F821, UP037
"""A slice of `tt.arange` is a range of its own, so that it keeps no state out of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
X = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)

SLICES: dict[str, Callable[[int], Any]] = {
    "first": lambda n: tt.arange(100)[:n], "behind": lambda n: tt.arange(100)[30:30 + n], "row": lambda n: tt.arange(100)[None, 3:3 + n],
    "every third": lambda n: tt.arange(5, 300, 1)[2:2 + 3 * n:3], "of steps": lambda n: tt.arange(500, 0, -3)[1:n + 1],
    "of a slice": lambda n: tt.arange(200)[10:][5:5 + n], "backwards": lambda n: tt.arange(n)[::-1],
    "floats": lambda n: tt.arange(0, 100, 1, F32)[:n],
    "floats behind": lambda n: tt.arange(0, 100, 1, F32)[9:9 + n]}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_has_the_numbers_of_the_range(name: str) -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 64, F32]):
        return x + SLICES[name](64).astype(F32)
    g = f.using(verify_passes=True)
    np.testing.assert_array_equal(g(X), f.reference(X))
    np.testing.assert_array_equal(g(X), f.python(X))


def test_a_range_that_is_written_stays_one_array() -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 64, F32]):
        places = tt.arange(64)
        places[:4] = 9
        return x + places[:64].astype(F32)[None], places[2:6]
    expected = np.arange(64, dtype=np.float32)
    expected[:4] = 9
    found = f(X)
    np.testing.assert_array_equal(found[0], X + expected)
    np.testing.assert_array_equal(found[1], [9, 9, 4, 5])


def test_a_slice_of_a_range_stays_in_the_kernel_of_a_loop() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], n: Tensor["k", 64, F32], block: int = 32):
        seen = tt.zeros((x.shape[0], 1))
        for j in tt.loop(0, n.shape[0], block):
            score = x @ n[j:j + block].T
            mask = tt.arange(block)[None, :score.shape[1]] + j < 40
            seen[:] = seen + np.sum(np.where(mask, score, 0.0), axis=-1, keepdims=True)
        return seen * 2
    n = np.ones((70, 64), np.float32)
    assert [entry.value for entry in f.plan(arch="ascend_910b").entries if entry.key == "loops"] == ["kernel"]
    np.testing.assert_allclose(f.using(target="interp")(X, n), f.reference(X, n))


def test_the_plan_says_that_a_result_keeps_a_loop_out_of_a_kernel() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        seen = tt.zeros(x.shape)
        for _ in tt.loop(3):
            seen[:] = seen + x
        return seen
    assert "`seen` is a result" in next(entry.reason for entry in f.plan().entries if entry.key == "loops")
