"""Cube kernels on the emulated core: capacities, bounds, order of pipes, numbers that were never written, and the results."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, Scalar, Tensor, Tile, kernel, minimum, pto
from tests.npu.harness import A2A3_FAST
from tests.npu.kernels.batch import Bound, Case, check

F32, F16, BF16, I8, I32 = DType.F32, DType.F16, DType.BF16, DType.I8, DType.I32
RESULT = {F32: F32, F16: F32, BF16: F32, I8: I32}
SHAPES = ((16, 16, 16), (1, 64, 128), (17, 100, 5), (33, 65, 129), (128, 512, 128), (64, 1000, 200), (256, 96, 256), (40, 3000, 48))


def matmul(m: int, k: int, n: int, dtype: DType, turn: str = "") -> Kernel:
    """Return out = a @ b; `turn`: which operands are given transposed."""
    a_shape, b_shape = (k, m) if "a" in turn else (m, k), (n, k) if "b" in turn else (k, n)

    @kernel
    def product(a: In[Tile[*a_shape, dtype]], b: In[Tile[*b_shape, dtype]], out: Out[Tile[m, n, RESULT[dtype]]]) -> None:
        pto.store(out, (a.T if "a" in turn else a) @ (b.T if "b" in turn else b))

    return product


def numbers(rows: int, cols: int, dtype: DType, seed: int = 0) -> np.ndarray:
    """Return whole numbers of which every dtype holds each one, and f32 every sum."""
    return np.random.default_rng(seed + rows * cols).integers(-4, 5, (rows, cols)).astype(dtype.np)


def plain(rows: int, cols: int, dtype: DType, seed: int = 0) -> Bound:
    return Bound.plain(numbers(rows, cols, dtype, seed))


def cases() -> list[Case]:
    """Return products of all dtypes, each shape with one of the ways round, and parameters that lie transposed."""
    found = []
    for number, (m, k, n) in enumerate(SHAPES):
        for at, dtype in enumerate(RESULT):
            turn = ("", "a", "b", "ab")[(number + at) % 4]
            a = plain(*((k, m) if "a" in turn else (m, k)), dtype)
            b = plain(*((n, k) if "b" in turn else (k, n)), dtype, 1)
            found.append(Case(matmul(m, k, n, dtype, turn), {"a": a, "b": b, "out": plain(m, n, RESULT[dtype])}))
    turned = Bound.turned(numbers(70, 40, F16, 1))
    found.append(Case(matmul(24, 70, 40, F16), {"a": Bound.turned(numbers(24, 70, F16)), "b": turned, "out": plain(24, 40, F32)}))
    found.append(Case(matmul(24, 40, 70, F16, "b"), {"a": plain(24, 40, F16), "b": turned, "out": plain(24, 70, F32)}))
    spread = Bound.spread(numbers(24, 40, F32), 3, 1)
    found.append(Case(matmul(24, 40, 70, F32), {"a": spread, "b": plain(40, 70, F32), "out": plain(24, 70, F32)}))
    return found


def widened(m: int, k: int, n: int, turn: str = "") -> Kernel:
    """Return out = a @ b of i8 operands that the kernel casts to i32 before the product, or before it transposes them."""
    a_shape, b_shape = (k, m) if "a" in turn else (m, k), (n, k) if "b" in turn else (k, n)

    @kernel
    def product(a: In[Tile[*a_shape, I8]], b: In[Tile[*b_shape, I8]], out: Out[Tile[m, n, I32]]) -> None:
        left, right = pto.cast(a.T, I32) if "a" in turn else pto.cast(a, I32), pto.cast(b, I32)
        pto.store(out, left @ (right.T if "b" in turn else right))

    return product


def wide_numbers(rows: int, cols: int, seed: int) -> Bound:
    """Return i8 numbers of the whole range: f32 does not hold every sum of their products."""
    return Bound.plain(np.random.default_rng(seed).integers(-128, 128, (rows, cols)).astype(np.int8))


def widened_cases() -> list[Case]:
    found = []
    for turn, (m, k, n) in (("", (16, 64, 32)), ("a", (17, 100, 5)), ("b", (33, 2000, 64)), ("ab", (16, 32, 48))):
        a = wide_numbers(*((k, m) if "a" in turn else (m, k)), 1)
        b = wide_numbers(*((n, k) if "b" in turn else (k, n)), 2)
        found.append(Case(widened(m, k, n, turn), {"a": a, "b": b, "out": plain(m, n, I32)}))
    return found


@kernel
def blocked(a: In[Tensor], b: In[Tensor], out: Out[Tile[64, 96, F32]]) -> None:
    total = pto.alloc((64, 96), F32, init=0)
    for k in pto.range(0, a.shape[1], 128):
        depth = minimum(128, a.shape[1] - k)
        rows = pto.load(a, (0, k), shape=(64, 128), valid=(a.shape[0], depth))
        cols = pto.load(b, (k, 0), shape=(128, 96), valid=(depth, b.shape[1]))
        total[:] = pto.matmul(rows, cols, total)
    pto.store(out, total)


@kernel
def running(a: In[Tensor], b: In[Tensor], out: Out[Tensor], n: Scalar[I32]) -> None:
    """Stores the sum so far in every iteration, two results at a time."""
    one, two = pto.alloc((160, 160), F32, init=0), pto.alloc((160, 160), F32, init=0)
    for j in pto.range(n):
        rows, cols = pto.load(a, (0, j * 96), shape=(160, 96)), pto.load(b, (j * 96, 0), shape=(96, 160))
        one += rows @ cols
        two += cols.T @ rows.T
        pto.store(out, one, (j * 160, 0))
        pto.store(out, two, (j * 160, 160))


def loops() -> list[Case]:
    """Return sums over loops, with ragged ends and with results that do not fit L0C together."""
    found = [Case(running, {"a": plain(160, 192, F32), "b": plain(192, 160, F32), "out": plain(320, 320, F32), "n": 2},
                  {"a": F32, "b": F32, "out": F32})]
    for rows, depth, cols in ((64, 128, 96), (37, 1000, 50), (1, 129, 1), (64, 1, 95)):
        a, b, out = plain(rows, depth, F32), plain(depth, cols, F32), plain(rows, cols, F32)
        found.append(Case(blocked, {"a": a.ragged(group=0), "b": b.ragged(group=1, cols=True),
                                    "out": out.ragged(group=0).ragged(group=1, cols=True)}, {"a": F32, "b": F32}))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_products(family: str) -> None:
    check([*cases(), *widened_cases(), *loops()], family)
