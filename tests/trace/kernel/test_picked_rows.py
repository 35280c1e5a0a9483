"""gather, scatter and scatter_add of rows of a Tensor parameter, on both targets against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import TaskFailedError
from tests.tolerances import Array

F32, I32, I64 = DType.F32, DType.I32, DType.I64
TABLE = np.arange(60, dtype=np.float32).reshape(10, 6)
TARGETS = ["interp", "cpu_sim"]


def run(target: str, made: Any, **arrays: Any) -> None:
    """Run one task of a kernel on arrays and numbers, in place."""
    @workload
    def once() -> None:
        made[0](**{name: _tensor(a, name) if isinstance(a, np.ndarray) else a for name, a in arrays.items()})

    once().compile(target=target).run()


def _tensor(array: Array, name: str) -> Any:
    return Tensor(array, name=name) if array.strides[1] == array.itemsize else Tensor(array.T, name=name).T


@kernel
def pages(table: In[Tensor], rows: In[Tile[4, 1, I32]], col: Scalar[I32], n: Scalar[I32], y: Out[Tile[4, 3, F32]]) -> None:
    pto.store(y, pto.gather(table, rows, cols=(col, 3), valid=n, fill=-1))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("n", [-2, 0, 3, 4, 9])
def test_gather_of_rows_fills_behind_the_valid_ones(n: int, turned: bool, target: str) -> None:
    table = np.asfortranarray(TABLE) if turned else TABLE
    rows, y = np.array([[7], [0], [7], [9]], np.int32), np.zeros((4, 3), np.float32)
    run(target, pages, table=table, rows=rows, col=2, n=n, y=y)
    count = min(max(n, 0), 4)
    expected = np.full((4, 3), -1, np.float32)
    expected[:count] = TABLE[rows[:count, 0], 2:5]
    assert y.tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_an_index_that_is_not_valid_is_not_looked_at(target: str) -> None:
    rows, y = np.array([[7], [99], [-1], [9]], np.int32), np.zeros((4, 3), np.float32)
    run(target, pages, table=TABLE, rows=rows, col=0, n=1, y=y)
    assert y[0].tolist() == TABLE[7, :3].tolist() and (y[1:] == -1).all()
    run(target, pages, table=TABLE, rows=rows, col=99, n=0, y=y)
    assert (y == -1).all()
    run(target, pages, table=TABLE[:, :2].copy(), rows=rows, col=0, n=0, y=y)
    assert (y == -1).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n, col, row, said", [
    (2, 0, 10, ["expected: 0 .. 9", "found:    10, at row 1 and column 0 of the index"]),
    (2, 0, -1, ["expected: 0 .. 9", "found:    -1, at row 1 and column 0 of the index"]),
    (4, 4, 1, ["expected: columns inside 0 .. 5", "found:    columns 4 .. 6"]),
    (4, -1, 1, ["expected: columns inside 0 .. 5", "found:    columns -1 .. 1"])])
def test_a_row_or_column_outside_fails_the_task(n: int, col: int, row: int, said: list[str], target: str) -> None:
    rows = np.array([[7], [row], [0], [0]], np.int32)
    with pytest.raises(TaskFailedError) as failed:
        run(target, pages, table=TABLE, rows=rows, col=col, n=n, y=np.zeros((4, 3), np.float32))
    text = str(failed.value)
    assert "task pages[0] failed: gather of rows of table" in text and all(part in text for part in said)


@kernel
def write(rows: In[Tile[4, 1, I64]], value: In[Tile[4, 3, F32]], n: Scalar[I32], out: Out[Tensor]) -> None:
    pto.scatter(out, rows, value, cols=(1, 3), valid=n)


@kernel
def add(rows: In[Tile[4, 1, I64]], value: In[Tile[4, 3, F32]], n: Scalar[I32], out: InOut[Tensor]) -> None:
    pto.scatter_add(out, rows, value * 2, cols=(1, 3), valid=n)
    pto.scatter_add(out, rows, 100, cols=1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_scatter_writes_rows_and_scatter_add_adds_them(turned: bool, target: str) -> None:
    rows, value = np.array([[7], [0], [7], [9]], np.int64), np.arange(12, dtype=np.float32).reshape(4, 3)
    out = np.array(TABLE, order="F" if turned else "C")
    run(target, write, rows=rows, value=value, n=3, out=out)
    expected = TABLE.copy()
    expected[0, 1:4], expected[7, 1:4] = value[1], value[2]
    assert out.tolist() == expected.tolist()
    run(target, add, rows=rows, value=value, n=4, out=out)
    expected[0, 1:4] += 2 * value[1]
    expected[7, 1:4] += 2 * (value[0] + value[2])
    expected[9, 1:4] += 2 * value[3]
    expected[:, 0] += [100, 0, 0, 0, 0, 0, 0, 200, 0, 100]
    assert out.tolist() == expected.tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("made", [write, add], ids=["scatter", "scatter_add"])
def test_a_scattered_row_outside_fails_the_task_and_nothing_is_written_by_that_statement(made: Any, target: str) -> None:
    rows = np.array([[7], [0], [7], [2 ** 40]], np.int64)
    out = TABLE.copy()
    with pytest.raises(TaskFailedError, match=f"found:    {2 ** 40}, at row 3"):
        run(target, made, rows=rows, value=np.ones((4, 3), np.float32), n=4, out=out)
    assert out.tolist() == TABLE.tolist()


@kernel
def steps(state: InOut[Tensor], rows: In[Tile[2, 1, I32]], y: Out[Tile[2, 6, F32]], z: Out[Tile[2, 6, F32]]) -> None:
    before = pto.load(state, (0, 0), shape=(2, 6))
    pto.scatter(state, rows, before + 1)
    after = pto.gather(state, rows, cols=6)
    pto.store(state, after * 10, (0, 0))
    pto.store(y, before)
    pto.store(z, pto.gather(state, rows, cols=6) + after)


@pytest.mark.parametrize("target", TARGETS)
def test_statements_see_memory_in_program_order(target: str) -> None:
    state, rows = TABLE.copy(), np.array([[1], [5]], np.int32)
    y, z = np.zeros((2, 6), np.float32), np.zeros((2, 6), np.float32)
    run(target, steps, state=state, rows=rows, y=y, z=z)
    expected = TABLE.copy()
    expected[[1, 5]] = TABLE[:2] + 1
    after = expected[[1, 5]].copy()
    expected[:2] = after * 10
    assert y.tolist() == TABLE[:2].tolist()
    assert state.tolist() == expected.tolist() and z.tolist() == (expected[[1, 5]] + after).tolist()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [DType.BF16, DType.F16, DType.FP8E4M3, DType.I8, DType.U16, DType.F64, DType.BOOL], ids=str)
def test_rows_of_every_width(dtype: DType, target: str) -> None:
    @kernel
    def moves(table: In[Tensor], rows: In[Tile[3, 1, I32]], n: Scalar[I32], out: Out[Tensor]) -> None:
        pto.scatter(out, rows, pto.gather(table, rows, cols=5, valid=n, fill=dtype is DType.BOOL or 1))

    table = (TABLE % 2).astype(dtype.np)
    out, rows = np.zeros((10, 5), dtype.np), np.array([[3], [9], [1]], np.int32)
    run(target, moves, table=table, rows=rows, n=2, out=out)
    expected = np.zeros((10, 5), dtype.np)
    expected[[3, 9]], expected[1] = table[[3, 9], :5], 1
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))


def test_a_paged_cache_in_a_loop_of_tasks() -> None:
    rng = np.random.default_rng(1)
    cache, table = rng.standard_normal((32, 8)).astype(np.float32), rng.permutation(32).astype(np.int32).reshape(4, 8, 1)
    lens, out = np.array([8, 3, 0, 5], np.int32), np.zeros((4, 1, 8), np.float32)

    @kernel
    def summed(cache: In[Tensor], rows: In[Tile[8, 1, I32]], n: Scalar[I32], y: Out[Tile[1, 8, F32]]) -> None:
        pto.store(y, pto.colsum(pto.gather(cache, rows, cols=8, valid=n)))

    lengths = Tensor(lens, name="lens")

    @workload
    def attention() -> None:
        for b in P(4):
            summed[b](Tensor(cache, name="cache"), Tensor(table, name="table")[b], lengths[b], Tensor(out, name="out")[b])

    attention().compile(target="cpu_sim").run()
    for b in range(4):
        np.testing.assert_allclose(out[b, 0], cache[table[b, :lens[b], 0]].sum(axis=0), rtol=1e-5, atol=1e-6)
