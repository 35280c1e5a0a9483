"""Order and place of elements, by hand and against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import TaskFailedError
from tests.tolerances import Array

nan, inf = np.nan, np.inf
MIXED = np.array([[2, nan, -inf, 2, 0.0, -0.0, nan, inf, -3]], np.float32)


def run(body: Any, dtype: DType, rows: int, cols: int, **arrays: Array) -> Array:
    """Return what a kernel of these tiles stores to y [rows, cols]: by NumPy, and the same in C."""
    def made(**tiles: Any) -> None:
        y = tiles.pop("y")
        pto.store(y, body(**tiles))
    names = [*arrays, "y"]
    scope: dict[str, Any] = {"made": made}
    exec(f"def one({', '.join(names)}):\n    made({', '.join(f'{n}={n}' for n in names)})", scope)
    scope["one"].__annotations__ = {name: In[Tile[*a.shape, DType.from_numpy(a.dtype)]] for name, a in arrays.items()}
    scope["one"].__annotations__["y"] = Out[Tile[rows, cols, dtype]]
    compiled = kernel(scope["one"])
    expected = compiled.run(**arrays)
    assert isinstance(expected, np.ndarray)
    found = np.zeros((rows, cols), dtype.np)

    @workload
    def once() -> None:
        compiled[0](**{name: Tensor(a, name=name) for name, a in arrays.items()}, y=Tensor(found, name="y"))

    once().compile(target="cpu_sim").run()
    np.testing.assert_array_equal(found, expected)
    return expected


@pytest.mark.slow
def test_nan_is_the_largest_and_equal_elements_keep_their_order() -> None:
    assert run(lambda x: pto.argsort(x), DType.I32, 1, 9, x=MIXED).tolist() == [[2, 8, 4, 5, 0, 3, 7, 1, 6]]
    assert run(lambda x: pto.argsort(x, descending=True), DType.I32, 1, 9, x=MIXED).tolist() == [[1, 6, 7, 0, 3, 4, 5, 8, 2]]


@pytest.mark.slow
def test_sort_gives_the_elements_with_their_bits() -> None:
    found = run(lambda x: pto.sort(x), DType.F32, 1, 9, x=MIXED)
    np.testing.assert_array_equal(found, np.sort(MIXED, axis=1))
    assert not np.signbit(found[0, 2]) and np.signbit(found[0, 3])
    np.testing.assert_array_equal(run(lambda x: pto.sort(x, True), DType.F32, 1, 9, x=MIXED)[0, :3], [nan, nan, inf])


@pytest.mark.slow
def test_topk_gives_the_best_first_with_their_columns() -> None:
    assert run(lambda x: pto.topk(x, 4)[1], DType.I32, 1, 4, x=MIXED).tolist() == [[1, 6, 7, 0]]
    np.testing.assert_array_equal(run(lambda x: pto.topk(x, 4)[0], DType.F32, 1, 4, x=MIXED), [[nan, nan, inf, 2]])
    assert run(lambda x: pto.topk(x, 3, largest=False)[0], DType.F32, 1, 3, x=MIXED).tolist() == [[-inf, -3, 0]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("k", [1, 100, 500, 900])
@pytest.mark.parametrize("kind", ["plain", "few values", "one value", "with NaN"])
def test_topk_of_long_rows_is_the_front_of_argsort(k: int, kind: str) -> None:
    rng = np.random.default_rng(k)
    x = rng.standard_normal((3, 1000)).astype(np.float32)
    x = {"plain": x, "few values": np.round(x), "one value": np.ones_like(x), "with NaN": np.where(x > 1, nan, x)}[kind].astype(np.float32)
    keys = np.where(np.isnan(x), -inf, -x)
    expected = np.argsort(keys, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(run(lambda x: pto.topk(x, k)[1], DType.I32, 3, k, x=x), expected)


@pytest.mark.slow
def test_the_place_of_the_largest_and_smallest_is_the_first_and_that_of_a_nan() -> None:
    x = np.array([[1, 5, 5, 0], [3, nan, 9, nan], [-0.0, 0.0, -1, 0.0]], np.float32)
    assert run(lambda x: pto.rowargmax(x), DType.I32, 3, 1, x=x).tolist() == [[1], [1], [0]]
    assert run(lambda x: pto.rowargmin(x), DType.I32, 3, 1, x=x).tolist() == [[3], [1], [2]]


def test_rowprod_multiplies_and_wraps() -> None:
    x = np.array([[2, 3, 7], [100, 100, 100]], np.int8)
    assert run(lambda x: pto.rowprod(x), DType.I8, 2, 1, x=x).tolist() == [[42], [1_000_000 % 256]]


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.slow
def test_gather_picks_along_columns_or_rows() -> None:
    index = np.array([[3, 0], [1, 1], [2, 3]], np.int32)
    assert run(lambda x, i: pto.gather(x, i), DType.F32, 3, 2, x=X, i=index).tolist() == [[3, 0], [5, 5], [10, 11]]
    rows = np.array([[2], [0], [2], [1]], np.int64)
    assert run(lambda x, i: pto.gather(x, i, axis=0), DType.F32, 4, 4, x=X, i=rows).tolist() == X[[2, 0, 2, 1]].tolist()


@pytest.mark.slow
def test_scatter_keeps_the_last_and_scatter_add_adds_all() -> None:
    index = np.array([[3, 3, 0], [0, 1, 1], [2, 2, 2]], np.int32)
    value = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
    assert run(lambda x, i, v: pto.scatter(x, i, v), DType.F32, 3, 4, x=X, i=index, v=value).tolist() == [
        [3, 1, 2, 2], [4, 6, 6, 7], [8, 9, 9, 11]]
    assert run(lambda x, i, v: pto.scatter_add(x, i, v), DType.F32, 3, 4, x=X, i=index, v=value).tolist() == [
        [3, 1, 2, 6], [8, 16, 6, 7], [8, 9, 34, 11]]


@pytest.mark.slow
def test_scatter_of_rows_and_of_a_number() -> None:
    rows = np.array([[2], [0]], np.int32)
    assert run(lambda x, i: pto.scatter(x, i, 7, axis=0), DType.F32, 3, 4, x=X, i=rows).tolist() == [[7] * 4, X[1].tolist(), [7] * 4]
    twice = np.array([[1], [1]], np.int32)
    assert run(lambda x, i: pto.scatter_add(x, i, 0.5, axis=0), DType.F32, 3, 4, x=X, i=twice)[1].tolist() == [5, 6, 7, 8]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("op", ["gather", "scatter", "scatter_add"])
@pytest.mark.parametrize("bad", [-1, 4, 2 ** 31 - 1, -2 ** 31])
def test_an_index_outside_fails_the_task_and_is_named(op: str, bad: int, target: str) -> None:
    index = Tensor(np.array([[[0, 1], [2, 3], [1, 1]], [[0, 1], [2, bad], [9, 9]]], np.int32), name="index")
    out = Tensor(np.zeros((2, 3, 4), np.float32), name="out")

    @kernel
    def moves(x: In[Tile[3, 4, DType.F32]], i: In[Tile[3, 2, DType.I32]], y: Out[Tile[3, 4, DType.F32]]) -> None:
        pto.store(y, pto.pad(pto.gather(x, i), (3, 4)) if op == "gather" else getattr(pto, op)(x, i, 1.5))

    @workload
    def both() -> None:
        for b in P(2):
            moves[b](Tensor(X, name="x"), index[b], out[b])

    with pytest.raises(TaskFailedError) as failed:
        both().compile(target=target).run()
    text = str(failed.value)
    assert f"task moves[b=1] failed: {op} along axis 1 of Tile[3, 4, f32]: an index lies outside" in text
    assert "expected: 0 .. 3" in text and f"found:    {bad}, at row 1 and column 1 of the index" in text


def test_an_index_that_is_not_used_still_fails_the_task() -> None:
    @kernel
    def moves(x: In[Tile[3, 4, DType.F32]], i: In[Tile[1, 1, DType.I32]], y: Out[Tile[3, 4, DType.F32]]) -> None:
        pto.gather(x, i, axis=0)
        pto.store(y, x)

    @workload
    def once() -> None:
        moves[0](Tensor(X, name="x"), Tensor(np.array([[3]], np.int32), name="i"), Tensor(np.zeros((3, 4), np.float32), name="y"))

    with pytest.raises(TaskFailedError, match="found:    3"):
        once().compile(target="cpu_sim").run()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("first", ["gather", "load", "scatter"])
def test_of_two_faults_the_first_in_the_kernel_ends_the_task(first: str, target: str) -> None:
    @kernel
    def moves(x: In[Tensor], i: In[Tile[1, 1, DType.I32]], y: Out[Tile[1, 4, DType.F32]], z: InOut[Tensor]) -> None:
        def load() -> Any:
            return pto.load(x, (9, 0), shape=(1, 4))

        def gather() -> Any:
            return pto.gather(pto.load(x, (0, 0), shape=(3, 4)), i, axis=0)

        def scatter() -> Any:
            pto.scatter_add(z, i, pto.full((1, 4), 1.0, DType.F32))
            return pto.zeros((1, 4), DType.F32)

        parts = {"load": load, "gather": gather, "scatter": scatter}
        made = parts.pop(first)()
        for part in parts.values():
            made = made + part()
        pto.store(y, made)

    @workload
    def once() -> None:
        moves[0](Tensor(X, name="x"), Tensor(np.array([[3]], np.int32), name="i"), Tensor(np.zeros((1, 4), np.float32), name="y"),
                 Tensor(np.zeros((3, 4), np.float32), name="z"))

    said = {"gather": "gather along axis 0", "load": "load x[9, 0]", "scatter": "scatter_add of rows of z"}[first]
    with pytest.raises(TaskFailedError) as failed:
        once().compile(target=target).run()
    assert f"failed: {said}" in str(failed.value)
