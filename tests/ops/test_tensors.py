"""The ops on arrays of any rank: shapes and dtypes with symbols, values from NumPy, and the bits of the kernels' interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp.errors import PtoError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef, add, mul
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.spec import ColReduce, Elementwise, RowReduce
from pto_wsp.ops.spec import evaluate as evaluate_tile
from pto_wsp.ops.table import ENTRIES
from pto_wsp.ops.tensors import ArrayType, SizedType, evaluate, infer

F32, F16, BF16, I8, I32, I64, BOOL = DType.F32, DType.F16, DType.BF16, DType.I8, DType.I32, DType.I64, DType.BOOL
N, T = SymbolRef("n", 0), SymbolRef("t", 1)


def of(*extents: int | Scalar, dtype: DType = F32) -> ArrayType:
    return ArrayType(tuple(Const(n) if isinstance(n, int) else n for n in extents), dtype)


@pytest.mark.parametrize(("op", "operands", "attrs", "expected"), [
    ("add", [of(N, 4), of(4)], (), of(N, 4)),
    ("add", [of(N, 1), of(1, T)], (), of(N, T)),
    ("add", [of(add(N, N), 4), None], (), of(add(N, N), 4)),
    ("add", [of(mul(N, Const(2)), 4), of(add(N, N), 4)], (), of(mul(N, Const(2)), 4)),
    ("lt", [of(N), None], (), of(N, dtype=BOOL)),
    ("where", [of(N, 1, dtype=BOOL), of(4, dtype=I8), None], (), of(N, 4, dtype=I8)),
    ("rowsum", [of(2, N, T)], (), of(2, N, 1)),
    ("colmax", [of(2, N, T, dtype=I32)], (), of(2, 1, T, dtype=I32)),
    ("matmul", [of(T, N, 64), of(64, 8)], (), of(T, N, 8)),
    ("matmul", [of(T, N, 64, dtype=I8), of(T, 64, 8, dtype=I8)], (), of(T, N, 8, dtype=I32)),
    ("matmul", [of(T, 64, N, dtype=F16), of(8, 64, dtype=F16)], (("transpose_a", True), ("transpose_b", True)), of(T, N, 8)),
    ("cast", [of(N, 3)], (("dtype", F16),), of(N, 3, dtype=F16)),
    ("transpose", [of(T, N, 3)], (), of(T, 3, N)),
    ("argsort", [of(T, N)], (("descending", False),), of(T, N, dtype=I32)),
    ("topk", [of(5, T, 64)], (("k", 6), ("descending", True)), of(5, T, 6, dtype=I32)),
    ("topk", [of(64)], (("k", 6), ("descending", True)), of(6, dtype=I32)),
    ("gather", [of(2, T, N), of(2, T, 6, dtype=I32)], (("axis", 1),), of(2, T, 6)),
    ("concat", [of(T, 3), of(T, 4)], (("axis", 1),), of(T, 7)),
    ("cumsum", [of(2, T, N, dtype=I32)], (("axis", 1),), of(2, T, N, dtype=I32)),
    ("logical_and", [of(2, T, dtype=BOOL), of(2, T)], (), of(2, T, dtype=BOOL)),
    ("clamp", [of(2, T), None, None], (), of(2, T)),
    ("take", [of(N, 3, 4), of(T, 2, dtype=I64)], (), of(T, 2, 3, 4)),
])
def test_types(op: str, operands: list[ArrayType | None], attrs: Any, expected: ArrayType) -> None:
    (found,) = infer(op, operands, attrs)
    assert found == expected


def test_rows_of_gives_places_and_starts() -> None:
    assert infer("rows_of", [of(N, 6, dtype=I32)], (("n", 8),)) == (of(mul(N, Const(6)), dtype=I32), of(9, dtype=I32))


def test_ops_that_take_their_shape_from_the_result() -> None:
    for op, operands in (("full", [None]), ("arange", [None, None]), ("random", [None] * 4)):
        assert infer(op, operands, (), of(N, 2)) == (of(N, 2),)
    assert infer("expand", [of(1, 2)], (), of(N, 2)) == (of(N, 2),)
    assert infer("reshape", [of(N, 6)], (), of(N, 2, 3)) == (of(N, 2, 3),)


@pytest.mark.parametrize(("op", "operands", "attrs", "code"), [
    ("add", [of(N), of(T)], (), "T202"),
    ("add", [of(N), of(1, 4)], (), "T202"),
    ("add", [of(4), of(4, dtype=I32)], (), "T203"),
    ("exp", [of(4, dtype=I32)], (), "T204"),
    ("colsum", [of(4)], (), "T202"),
    ("matmul", [of(N, 64), of(32, 4)], (), "T202"),
    ("matmul", [of(N, 64), None], (), "T213"),
    ("matmul", [of(2, N, 64), of(3, 64, 4)], (), "T202"),
    ("concat", [of(T, N), of(T, 4)], (("axis", 1),), "T202"),
    ("take", [of(N, 4), of(3)], (), "T204"),
    ("rows_of", [of(N, dtype=I32)], (), "T202"),
    ("nothing", [of(3)], (), "T213"),
    ("split", [of(4, 4)], (("sections", 2),), "T213"),
    ("expand", [of(3, 2)], (), "T202"),
])
def test_what_does_not_fit_is_refused(op: str, operands: list[ArrayType | None], attrs: Any, code: str) -> None:
    with pytest.raises(PtoError) as caught:
        infer(op, operands, attrs)
    assert caught.value.code == code and "pto." not in caught.value.message
    assert "1000003" not in str(caught.value)


def run(op: str, *operands: Any, attrs: Any = (), shape: tuple[int, ...], dtype: DType = F32) -> Any:
    (found,) = evaluate(op, operands, attrs, (SizedType(shape, dtype),))
    assert found.dtype == dtype.np
    return found


RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 2, 5, 7)).astype(np.float32)


def test_values_are_numpys_in_any_rank() -> None:
    np.testing.assert_array_equal(run("add", X, X[0, :, :1], shape=X.shape), X + X[0, :, :1])
    np.testing.assert_array_equal(run("add", X[0, 0, 0, 0].reshape(()), 2, shape=()), X[0, 0, 0, 0] + np.float32(2))
    np.testing.assert_array_equal(run("rowmax", X, shape=(3, 2, 5, 1)), X.max(-1, keepdims=True))
    np.testing.assert_array_equal(run("colmin", X, shape=(3, 2, 1, 7)), X.min(-2, keepdims=True))
    np.testing.assert_allclose(run("rowmean", X, shape=(3, 2, 5, 1)), X.astype(np.float64).mean(-1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run("transpose", X, shape=(3, 2, 7, 5)), X.swapaxes(-1, -2))
    np.testing.assert_array_equal(run("reshape", X, shape=(6, 35)), X.reshape(6, 35))
    np.testing.assert_array_equal(run("expand", X[:, :1], shape=X.shape), np.broadcast_to(X[:, :1], X.shape))
    np.testing.assert_array_equal(run("iota", attrs=(("axis", 0),), shape=(2, 3, 4), dtype=I32),
                                  np.broadcast_to(np.arange(3)[:, None], (2, 3, 4)))


def test_products_have_batches() -> None:
    a, b = RNG.integers(-4, 5, (3, 1, 5, 7)).astype(np.int8), RNG.integers(-4, 5, (2, 7, 4)).astype(np.int8)
    np.testing.assert_array_equal(run("matmul", a, b, shape=(3, 2, 5, 4), dtype=I32), a.astype(np.int32) @ b.astype(np.int32))
    acc = np.ones((3, 2, 5, 4), np.int32)
    np.testing.assert_array_equal(run("matmul", a, b, acc, shape=(3, 2, 5, 4), dtype=I32), acc + a.astype(np.int32) @ b.astype(np.int32))


def test_order_and_places_along_the_last_dimension() -> None:
    order = run("argsort", X, attrs=(("descending", False),), shape=X.shape, dtype=I32)
    np.testing.assert_array_equal(order, np.argsort(X, -1, kind="stable"))
    best = run("topk", X, attrs=(("k", 3), ("descending", True)), shape=(3, 2, 5, 3), dtype=I32)
    np.testing.assert_array_equal(run("gather", X, best, attrs=(("axis", 1),), shape=best.shape), -np.sort(-X, -1)[..., :3])
    np.testing.assert_array_equal(run("topk", X[0, 0, 0], attrs=(("k", 3), ("descending", True)), shape=(3,), dtype=I32), best[0, 0, 0])
    np.testing.assert_array_equal(run("rowargmin", X, shape=(3, 2, 5, 1), dtype=I32), X.argmin(-1, keepdims=True))
    rows = RNG.integers(0, 5, (3, 2, 4, 7)).astype(np.int32)
    np.testing.assert_array_equal(run("gather", X, rows, attrs=(("axis", 0),), shape=rows.shape), np.take_along_axis(X, rows, -2))


def test_functions_of_pto_that_are_no_entries() -> None:
    whole = RNG.integers(-9, 9, (3, 4, 6)).astype(np.int32)
    np.testing.assert_array_equal(run("cumsum", whole, attrs=(("axis", 1),), shape=whole.shape, dtype=I32), whole.cumsum(-1))
    np.testing.assert_array_equal(run("cumsum", whole, attrs=(("axis", 0),), shape=whole.shape, dtype=I32), whole.cumsum(-2))
    np.testing.assert_array_equal(run("clamp", X, -0.5, 0.5, shape=X.shape), X.clip(-0.5, 0.5))
    np.testing.assert_array_equal(run("square", X[0, 0, 0], shape=(7,)), X[0, 0, 0] ** 2)


def test_take_rows_of_arange_random_and_full() -> None:
    table = np.array([[2, 0], [1, 2]])
    np.testing.assert_array_equal(run("take", X, table, shape=(2, 2, 2, 5, 7)), X[table])
    places, starts = evaluate("rows_of", (np.array([[2, 0, 2], [1, 2, 0]]),), (("n", 4),), (SizedType((6,), I32), SizedType((5,), I32)))
    np.testing.assert_array_equal(places, [1, 5, 3, 0, 2, 4])
    np.testing.assert_array_equal(starts, [0, 2, 3, 6, 6])
    np.testing.assert_array_equal(run("arange", 3, -2, shape=(4,), dtype=I64), [3, 1, -1, -3])
    np.testing.assert_array_equal(run("arange", 0.5, 0.25, shape=(2, 3)), [[0.5, 0.75, 1.0]] * 2)
    np.testing.assert_array_equal(run("full", 300, shape=(2,), dtype=I8), [44, 44])
    drawn = run("random", 7, 0, 6, 1, shape=(4, 6))
    np.testing.assert_array_equal(drawn.ravel(), run("random", 7, 0, 1, shape=(24,)))
    assert drawn.min() >= 0 and drawn.max() < 1 and len(np.unique(drawn)) > 20
    assert run("random", 7, 0, 0, 1, shape=(3, 0)).shape == (3, 0)


@pytest.mark.parametrize(("op", "operands", "attrs", "shape"), [
    ("take", (X, np.array([3])), (), (1, 2, 5, 7)),
    ("gather", (X, np.full((3, 2, 5, 1), -1, np.int32)), (("axis", 1),), (3, 2, 5, 1)),
    ("rowmax", (X[..., :0],), (), (3, 2, 5, 1)),
    ("rowargmax", (X[..., :0],), (), (3, 2, 5, 1)),
    ("topk", (X,), (("k", 8), ("descending", True)), (3, 2, 5, 8)),
])
def test_indices_outside_and_choices_of_nothing_are_errors(op: str, operands: Any, attrs: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(PtoError):
        evaluate(op, operands, attrs, (SizedType(shape, F32),))


@pytest.mark.parametrize("op", ["rowsum", "rowprod", "colsum", "rowmax", "matmul", "argsort", "cumsum"])
def test_empty_arrays_have_results(op: str) -> None:
    attrs: Any = {"argsort": (("descending", True),), "cumsum": (("axis", 1),)}.get(op, ())
    x = X[:, :, :0]                          # no rows
    operands: tuple[Any, ...] = (x,)
    shape = {"rowsum": (3, 2, 0, 1), "rowprod": (3, 2, 0, 1), "rowmax": (3, 2, 0, 1), "colsum": (3, 2, 1, 7)}.get(op, x.shape)
    if op == "matmul":
        operands, shape = (x, X[0, 0].T[:, :4]), (3, 2, 0, 4)
    assert run(op, *operands, attrs=attrs, shape=shape, dtype=I32 if op == "argsort" else F32).shape == shape


def numbers(dtype: DType, shape: tuple[int, ...]) -> Any:
    if dtype.is_bool:
        return RNG.random(shape) < 0.5
    return RNG.integers(0 if dtype.np.kind == "u" else -9, 9, shape).astype(dtype.np) if not dtype.is_real \
        else (3 * RNG.standard_normal(shape)).astype(dtype.np)


@pytest.mark.parametrize("dtype", [F32, F16, BF16, I8, DType.U16, BOOL], ids=str)
def test_every_element_by_element_op_and_reduction_has_the_bits_of_the_tile(dtype: DType) -> None:
    """The tiles of the last two dimensions, one by one, give what the whole array gives."""
    checked = 0
    for entry in ENTRIES:
        if not isinstance(entry, Elementwise | RowReduce | ColReduce) or dtype not in entry.dtypes:
            continue
        n = len(entry.params) if isinstance(entry, Elementwise) else 1
        masked = isinstance(entry, Elementwise) and entry.mask_first
        arrays = [numbers(BOOL if masked and k == 0 else dtype, (3, 4, 33)) for k in range(n)]
        types = [TileType(4, 33, DType.from_numpy(x.dtype)) for x in arrays]
        wanted = entry.infer(types, ())
        (found,) = evaluate(entry.name, arrays, (), (SizedType((3, *wanted.shape), wanted.dtype),))
        for k in range(3):
            tile = evaluate_tile(entry, [x[k] for x in arrays], wanted)
            assert tile.tobytes() == np.ascontiguousarray(found[k]).tobytes(), entry.name
        checked += 1
    assert checked > 5

