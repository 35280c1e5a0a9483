"""Orders, places and numbers: bit for bit on elements that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, pto
from pto_wsp.npu.isa import tile_program as tp
from tests.npu.select.kernels import selected
from tests.npu.select.numbers import Array, check, kernel_of, numbers

F32, I32 = DType.F32, DType.I32


def different(dtype: DType, rows: int, cols: int) -> Array:
    """Return rows of numbers that differ, an infinity of each sign among them."""
    rng = np.random.default_rng(4)
    whole = np.stack([rng.permutation(max(cols, 200))[:cols] for _ in range(rows)]) - (100 if dtype not in (DType.U8, DType.U16) else 0)
    x = (whole / 8 if dtype.is_float else whole).astype(dtype.np)
    if dtype.is_float:
        x[1, 3], x[2, 0] = np.inf, -np.inf
    return x


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cols", [20, 32, 100, 130])
@pytest.mark.parametrize("dtype", [F32, DType.F16, DType.BF16, DType.I16, DType.U8])
def test_sort_and_topk(dtype: DType, cols: int) -> None:
    x = different(dtype, 3, cols)
    for descending in (True, False):
        check(lambda tile, d=descending: pto.sort(tile, descending=d), x, out=(3, cols, dtype))
        check(lambda tile, d=descending: pto.argsort(tile, descending=d), x, out=(3, cols, I32))
        check(lambda tile, d=descending: pto.topk(tile, 7, largest=d)[0], x, out=(3, 7, dtype))
        check(lambda tile, d=descending: pto.topk(tile, 7, largest=d)[1], x, out=(3, 7, I32))
    check(lambda tile: pto.topk(tile, 1)[0], x, out=(3, 1, dtype))
    check(lambda tile: pto.topk(tile, 1)[1], x, out=(3, 1, I32))


def test_elements_at_the_places_of_their_order_come_out_of_the_sort() -> None:
    """gather(x, argsort(x)) needs no comparison of every place; along the other axis, or of another tile, it does."""
    x = different(F32, 4, 4)

    def other(tile: Any) -> Any:
        held = pto.alloc((4, 4), F32, init=0)
        held[:] = tile
        order = pto.argsort(held)
        held[:] = tile * 2 + 1
        return pto.gather(held, order, axis=1)

    def ordered(tile: Any, axis: int) -> Any:
        return pto.gather(tile, pto.argsort(tile), axis=axis)

    for op, compares in ((lambda tile: ordered(tile, 1), False), (lambda tile: ordered(tile, 0), True), (other, True)):
        check(op, x, out=(4, 4, F32))
        loops = [step.var.name for step in selected(kernel_of(op, (x,), (4, 4, F32))).body if isinstance(step, tp.For)]
        assert ("place" in loops) is compares, loops


@pytest.mark.parametrize("dtype", [F32, DType.F16, DType.BF16, I32, DType.I16, DType.U8, DType.U32, DType.BOOL])
@pytest.mark.parametrize("op", [pto.rowargmax, pto.rowargmin], ids=lambda op: op.__name__)
def test_the_first_of_the_largest(op: Callable[..., Any], dtype: DType) -> None:
    x = numbers(dtype)
    x[4] = x[4, 7]
    check(op, x, out=(8, 1, I32))
    check(op, x[:, :1].copy(), out=(8, 1, I32))


@pytest.mark.parametrize("dtype", [F32, DType.BF16, I32, DType.I8, DType.BOOL])
def test_gather(dtype: DType) -> None:
    rng, x = np.random.default_rng(5), numbers(dtype, (6, 20))
    for shape, axis, out in (((6, 9), 1, (6, 9)), ((1, 9), 1, (6, 9)), ((6, 1), 1, (6, 1)), ((4, 20), 0, (4, 20)), ((4, 1), 0, (4, 20))):
        index = rng.integers(0, x.shape[axis], shape).astype(np.int32)
        check(lambda tile, at, a=axis: pto.gather(tile, at, axis=a), x, index, out=(*out, dtype))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, DType.F16, DType.BF16, I32, DType.U8])
def test_scatter_in_order(dtype: DType) -> None:
    rng, x = np.random.default_rng(6), different(dtype, 6, 20)
    for shape, axis in (((6, 9), 1), ((4, 20), 0), ((4, 1), 0)):
        index = rng.integers(0, x.shape[axis], shape).astype(np.int32)
        full = (x.shape[0], shape[1]) if axis == 1 else (shape[0], x.shape[1])
        value = rng.integers(0, 9, full).astype(dtype.np)
        for op in (pto.scatter, pto.scatter_add):
            check(lambda tile, at, new, a=axis, op=op: op(tile, at, new, axis=a), x, index, value, out=(6, 20, dtype))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, DType.F16, I32, DType.I16, DType.U8])
def test_numbers_of_rows_and_columns(dtype: DType) -> None:
    x = numbers(dtype, (6, 50))
    for axis in (0, 1):
        check(lambda tile, a=axis: pto.where(tile == tile, pto.iota((6, 50), dtype, axis=a), 0), np.ones_like(x), out=(6, 50, dtype))
    for diagonal in (-2, 0, 3):
        check(lambda tile, d=diagonal: pto.tril(tile, d), x, out=(6, 50, dtype))
        check(lambda tile, d=diagonal: pto.triu(tile, d), x, out=(6, 50, dtype))
