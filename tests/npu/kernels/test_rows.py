"""Rows of a Tensor parameter that an index picks, on the emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, kernel, pto
from tests.npu.harness import A2A3_FAST, A5_FAST
from tests.npu.kernels.batch import Array, Bound, Case, check
from tests.npu.select.numbers import numbers

F32, I32 = DType.F32, DType.I32
ROWS, COLS = 30, 20
INDEX = np.array([[3], [0], [29], [7], [7], [1]], np.int32)


def picking(dtype: DType) -> Kernel:
    @kernel
    def picked(table: In[Tensor], at: In[Tile[6, 1, I32]], out: Out[Tile[6, COLS, dtype]]) -> None:  # type: ignore[valid-type]
        pto.store(out, pto.gather(table, at, cols=COLS))
    return picked


def spreading(dtype: DType, add: bool) -> Kernel:
    @kernel
    def spread(table: InOut[Tensor], at: In[Tile[6, 1, I32]], x: In[Tile[6, COLS, dtype]]) -> None:  # type: ignore[valid-type]
        if add:
            pto.scatter_add(table, at, x + x)
        else:
            pto.scatter(table, at, x)
    return spread


@kernel
def by_wide_numbers(table: In[Tensor], at: In[Tile[6, 2, DType.I64]], out: Out[Tile[6, COLS, F32]]) -> None:
    pto.store(out, pto.gather(table, at[:, 1:], cols=COLS) - pto.gather(table, at[:, :1], cols=COLS))


@kernel
def by_one_wide_number(table: In[Tensor], at: In[Tile[6, 1, DType.I64]], out: Out[Tile[6, COLS, F32]]) -> None:
    pto.store(out, pto.gather(table, at, cols=COLS))


@kernel
def some(table: In[Tensor], at: In[Tile[6, 1, I32]], out: Out[Tile[6, 8, F32]], n: Scalar[I32]) -> None:
    pto.store(out, pto.gather(table, at + 1, cols=(8, 8), valid=n, fill=5) * 2)


def plain(dtype: DType, rows: int, seed: int = 0) -> Array:
    x = numbers(dtype, (rows, COLS), seed)
    return np.where(np.isfinite(x), x, 1).astype(dtype.np) if dtype.is_float else x


def _case(made: Kernel, **arrays: Array) -> Case:
    return Case(made, {name: Bound.plain(array) for name, array in arrays.items()}, given={"table": arrays["table"]})


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_rows_by_an_index(family: str) -> None:
    cases = []
    for dtype in (F32, DType.BF16, DType.I32, DType.U8, DType.BOOL):
        cases.append(_case(picking(dtype), table=plain(dtype, ROWS), at=INDEX, out=np.zeros((6, COLS), dtype.np)))
        cases.append(_case(spreading(dtype, False), table=plain(dtype, ROWS), at=INDEX, x=plain(dtype, 6, 1)))
        if dtype is not DType.BOOL:
            cases.append(_case(spreading(dtype, True), table=plain(dtype, ROWS), at=INDEX, x=plain(dtype, 6, 1)))
    table = plain(F32, 31)
    arguments = {"table": Bound.plain(table), "at": Bound.plain(INDEX), "out": Bound.plain(np.zeros((6, 8), np.float32)), "n": 4}
    cases.append(Case(some, arguments, given={"table": table}))
    pairs = np.concatenate([INDEX, INDEX[::-1]], axis=1).astype(np.int64)
    for made, at in ((by_wide_numbers, Bound.plain(pairs)), (by_one_wide_number, Bound.plain(pairs[:, :1].copy())),
                     (by_one_wide_number, Bound.spread(pairs[:, :1], 2, 3))):
        bound = {"table": Bound.plain(table), "at": at, "out": Bound.plain(np.zeros((6, COLS), np.float32))}
        cases.append(Case(made, bound, given={"table": table}))
    short = {"table": Bound.plain(table), "at": Bound.plain(pairs[:4, :1].copy()).ragged(group=0),
             "out": Bound.plain(np.zeros((4, COLS), np.float32)).ragged(group=0)}
    cases.append(Case(by_one_wide_number, short, given={"table": table}))
    cases.append(Case(picking(F32), {"table": Bound.turned(plain(F32, ROWS)), "at": Bound.plain(INDEX),
                                     "out": Bound.plain(np.zeros((6, COLS), np.float32))}, given={"table": table}))
    check(cases, family)


@pytest.mark.parametrize("family", A2A3_FAST)
def test_a_row_outside_moves_nothing(family: str) -> None:
    at, table, x = np.array([[3], [-1], [30], [1 << 20], [7], [29]], np.int32), plain(F32, ROWS), plain(F32, 6, 1)
    there = (at[:, 0] >= 0) & (at[:, 0] < ROWS)
    found = np.where(there[:, None], table[np.clip(at[:, 0], 0, ROWS - 1)], 0)
    after = table.copy()
    after[at[there, 0]] = x[there]
    gathered = {"table": Bound.plain(table), "at": Bound.plain(at), "out": Bound.plain(np.zeros((6, COLS), np.float32))}
    scattered = {"table": Bound.plain(table.copy()), "at": Bound.plain(at), "x": Bound.plain(x)}
    check([Case(picking(F32), gathered, given={"table": table}, expected={"out": found}),
           Case(spreading(F32, False), scattered, given={"table": table}, expected={"table": after})], family)
