"""Movements of tiles, whatever their columns start at: bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, pto
from tests.npu.select.numbers import Array, check, numbers

F32 = DType.F32
DTYPES = (F32, DType.F16, DType.BF16, DType.I32, DType.U8, DType.BOOL)


def wide(dtype: DType, rows: int = 6, cols: int = 20, seed: int = 0) -> Array:
    return numbers(dtype, (rows, cols), seed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "shape"), [
    (lambda x: x[2:5], (3, 20)), (lambda x: x[1::2], (3, 20)), (lambda x: x[:, 3:12], (6, 9)), (lambda x: x[:, 16:], (6, 4)),
    (lambda x: x[:, 1::3], (6, 7)), (lambda x: x[1:4, 5:6], (3, 1)), (lambda x: x[3], (1, 20)), (lambda x: x[:, 7], (6, 1)),
    (lambda x: x[4:5, 2:9], (1, 7)), (lambda x: x[2, 3], (1, 1)), (pto.slice_even, (6, 10)), (pto.slice_odd, (6, 10)),
    (pto.transpose, (20, 6)), (lambda x: pto.reshape(x, (4, 30)), (4, 30)), (lambda x: pto.reshape(x, (120, 1)), (120, 1)),
    (lambda x: pto.reshape(x, (1, 120)), (1, 120)), (lambda x: pto.pad(x, shape=(8, 24), value=1), (8, 24)),
    (lambda x: pto.pad(x, widths=((1, 2), (3, 1)), value=0), (9, 24)), (lambda x: pto.pad(x, widths=((0, 0), (8, 0))), (6, 28)),
])
def test_one_tile(op: Callable[..., Any], shape: tuple[int, int], dtype: DType) -> None:
    check(op, wide(dtype), out=(*shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_tiles(dtype: DType) -> None:
    x, y = wide(dtype), wide(dtype, seed=1)
    check(lambda a, b: pto.concat(a, b, axis=0), x, y[:3].copy(), out=(9, 20, dtype))
    check(lambda a, b: pto.concat(a, b, axis=1), x, wide(dtype, cols=9, seed=2), out=(6, 29, dtype))
    check(lambda a, b: pto.concat(a, b, axis=1), wide(dtype, cols=32), x, out=(6, 52, dtype))
    check(pto.interleave, x, y, out=(6, 40, dtype))


@pytest.mark.parametrize("dtype", [F32, DType.I16])
def test_single_rows_and_columns(dtype: DType) -> None:
    column, row = wide(dtype, 20, 8)[:, :1].copy(), wide(dtype, 6, 20)[:1].copy()
    check(lambda x: x[3:9], column, out=(6, 1, dtype))
    check(lambda x, y: pto.concat(x, y, axis=0), column, column, out=(40, 1, dtype))
    check(lambda x, y: pto.concat(x, y, axis=1), column, column, out=(20, 2, dtype))
    check(lambda x, y: pto.concat(x, y, axis=1), row, row, out=(1, 40, dtype))
    check(lambda x, y: pto.concat(x, y, axis=0), row, row, out=(2, 20, dtype))
    check(pto.interleave, row, row, out=(1, 40, dtype))
    check(pto.interleave, column, column, out=(20, 2, dtype))
    check(pto.transpose, column, out=(1, 20, dtype))
    check(pto.transpose, row, out=(20, 1, dtype))
    check(lambda x: pto.reshape(x, (5, 4)), column, out=(5, 4, dtype))
    check(lambda x: pto.reshape(x, (2, 10)), row, out=(2, 10, dtype))
    check(lambda x: pto.pad(x, shape=(24, 3)), column, out=(24, 3, dtype))


def test_single_elements() -> None:
    x = np.array([[3.5]], np.float32)
    check(lambda a: pto.concat(a, a, axis=1), x, out=(1, 2, F32))
    check(pto.interleave, x, x, out=(1, 2, F32))
    check(lambda a: pto.pad(a, widths=((1, 0), (2, 1)), value=1), x, out=(2, 4, F32))
    check(pto.transpose, x, out=(1, 1, F32))


def test_shapes_without_gaps_are_the_same_bytes() -> None:
    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    for shape in ((16, 32), (1, 512), (512, 1), (4, 128)):
        check(lambda tile, shape=shape: pto.reshape(tile, shape), x, out=(*shape, F32))
    check(lambda tile: pto.reshape(tile, (8, 64)), x.reshape(512, 1).copy(), out=(8, 64, F32))
