"""Branches and loops in generated C, against NumPy written out by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar

from ..conftest import Built
from .test_emit import check, normal, trace, zeros

F32, I32 = DType.F32, DType.I32
Build = Callable[..., Built]


def choose(x: In[Tile[4, 8, F32]], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
    """Three sides of n."""
    with pto.when(n > 2):
        pto.store(y, x * 2)
    with pto.otherwise():
        with pto.when(n < 0):
            pto.store(y, -x)
        with pto.otherwise():
            pto.store(y, x + n)


def triangle(x: In[Tile[4, 8, F32]], n: Scalar[I32], m: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
    """Add x for each pair i <= j of n and m whose sum is even, and count the others."""
    acc, others = pto.alloc((4, 8), F32, init=0), pto.alloc((1, 1), F32, init=0)
    for i in pto.range(n):
        for j in pto.range(i, m):
            with pto.when((i + j) % 2 == 0):
                acc += x
            with pto.otherwise():
                others += 1
    pto.store(y, acc + others * 100)


@pytest.mark.parametrize("n, expected", [(3, lambda x: x * 2), (-1, lambda x: -x), (0, lambda x: x), (2, lambda x: x + 2)])
def test_one_side_runs(build: Build, n: int, expected: Callable[..., object]) -> None:
    x, y = normal(4, 8), zeros(4, 8)
    built = build(trace(choose))
    assert built({"x": x, "n": n, "y": y}) == 0
    np.testing.assert_array_equal(y, expected(x))
    check(built, {"x": x, "n": n, "y": y})


@pytest.mark.parametrize("n, m", [(0, 5), (3, 0), (-4, 7), (2, 2), (3, 5), (5, 3)])
def test_nested_loops_with_bounds_of_scalars_and_of_outer_variables(build: Build, n: int, m: int) -> None:
    x, y = np.ones((4, 8), np.float32), zeros(4, 8)
    built = build(trace(triangle))
    assert built({"x": x, "n": n, "m": m, "y": y}) == 0
    pairs = [(i, j) for i in range(n) for j in range(i, m)]
    even = sum((i + j) % 2 == 0 for i, j in pairs)
    np.testing.assert_array_equal(y, even + 100 * (len(pairs) - even))
    check(built, {"x": x, "n": n, "m": m, "y": y})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("start, stop, step", [(0, 10, 3), (9, 2, 1), (-5, -5, 1), (-7, 4, 5), (2, 2 ** 62, 2 ** 61)])
def test_ranges_run_as_pythons_do(build: Build, start: int, stop: int, step: int) -> None:
    def body(start: Scalar[DType.I64], stop: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
        count = pto.alloc((1, 1), DType.I64, init=0)
        for _ in pto.range(start, stop, step):
            count += 1
        pto.store(y, count)
    y = np.zeros((1, 1), np.int64)
    assert build(trace(body))({"start": start, "stop": stop, "y": y}) == 0
    assert y[0, 0] == len(range(start, stop, step))


@pytest.mark.parametrize("n", [0, 1])
def test_a_guard_in_a_side_that_does_not_run_does_not_fail(build: Build, n: int) -> None:
    def body(x: In[Tensor], n: Scalar[I32], y: InOut[Tile[2, 2, F32]]) -> None:
        with pto.when(n == 0):
            pto.store(y, pto.load(x, (0, 0), shape=(2, 2)))
        with pto.otherwise():
            pto.store(y, pto.load(x, (100, 0), shape=(2, 2)))
    check(build(trace(body, x=F32)), {"x": normal(4, 4), "n": n, "y": zeros(2, 2)})
    assert build(trace(body, x=F32))({"x": normal(4, 4), "n": n, "y": zeros(2, 2)}) == 2 * n


@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_was_read_before_a_branch_stays_what_it_was(build: Build, n: int) -> None:
    def body(x: In[Tile[4, 8, F32]], n: Scalar[I32], state: InOut[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        acc = pto.alloc((4, 8), F32, init=3)
        before, was = pto.load(acc), pto.load(state)
        with pto.when(n > 0):
            acc[:] = x
            pto.store(state, x * 10)
            with pto.when(n > 3):
                acc += before
        pto.store(y, (before + acc) * 100 + was + state)
    check(build(trace(body)), {"x": normal(4, 8), "n": n, "state": normal(4, 8, seed=2), "y": zeros(4, 8)})


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 2])
def test_products_accumulate_across_a_branch(build: Build, n: int) -> None:
    def body(a: In[Tile[4, 4, DType.I32]], n: Scalar[I32], y: Out[Tile[4, 4, DType.I32]]) -> None:
        acc = pto.alloc((4, 4), I32, init=1)
        acc += a @ a
        with pto.when(n > 1):
            acc += a @ a
        acc += a @ a
        pto.store(y, acc)
    a, y = np.arange(16, dtype=np.int32).reshape(4, 4), np.zeros((4, 4), np.int32)
    assert build(trace(body))({"a": a, "n": n, "y": y}) == 0
    np.testing.assert_array_equal(y, 1 + (a @ a) * (3 if n > 1 else 2))


def test_sides_that_do_nothing_leave_no_branch(build: Build) -> None:
    def body(x: In[Tile[4, 8, F32]], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
        with pto.when(n > 0):
            x * 2
        with pto.otherwise():
            pass
        with pto.when(n > 7):
            pass
        with pto.otherwise():
            pto.store(y, x)
    built = build(trace(body))
    assert built.code.text.count("scalars[0]") == 1 and "if (!(scalars[0] > 7))" in built.code.text
    check(built, {"x": normal(4, 8), "n": 7, "y": zeros(4, 8)})
