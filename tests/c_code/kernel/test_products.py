"""Products of matrices in C against NumPy: dtypes, transposed operands, rows with gaps, a few rows or columns, long sums."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.c.kernel import emit_kernel
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.ops.rounding import MATMUL_RESULT
from pto_wsp.passes.kernel.passes import run_kernel_passes
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar
from pto_wsp.trace.kernel.definition import KernelDef

from ..conftest import Array, BuildAll, Built, Job

F32, I8, I32 = DType.F32, DType.I8, DType.I32
Build = Callable[..., Built]


def trace(function: Callable[..., None], **tensors: DType) -> k.Kernel:
    """Return the kernel IR of a Python function, whose annotations may use names of the caller."""
    return KernelDef.from_function(function, sys._getframe(1).f_locals).trace({}, tensors)


def numbers(dtype: DType, *shape: int, seed: int = 0) -> Array:
    """Return whole numbers small enough that sums of a thousand products are exact in any order."""
    return np.random.default_rng(seed).integers(-128 if dtype is I8 else -9, 10, shape).astype(dtype.np)


def four_ways(m: int, n: int, inner: int, dtype: DType) -> k.Kernel:
    """Return a kernel with one product for each transposition of pieces of wider tensors, of tiles, and one that accumulates."""
    result = MATMUL_RESULT[dtype]

    def product(a: In[Tensor], b: In[Tensor], turned_a: In[Tensor], turned_b: In[Tensor], plain: Out[Tile[m, n, result]],  # type: ignore[valid-type]
                left: Out[Tile[m, n, result]], right: Out[Tile[m, n, result]], both: Out[Tile[m, n, result]],  # type: ignore[valid-type]
                tiles: Out[Tile[m, n, result]], double: Out[Tile[m, n, result]]) -> None:  # type: ignore[valid-type]
        lhs, rhs = pto.load(a, (1, 2), shape=(m, inner)), pto.load(b, (1, 2), shape=(inner, n))
        down, across = pto.load(turned_a, (2, 1), shape=(inner, m)), pto.load(turned_b, (2, 1), shape=(n, inner))
        pto.store(plain, lhs @ rhs)
        pto.store(left, pto.load(turned_a, (2, 1), shape=(inner, m), transpose=True) @ rhs)
        pto.store(right, lhs @ pto.load(turned_b, (2, 1), shape=(n, inner), transpose=True))
        pto.store(both, down.T @ across.T)
        pto.store(tiles, pto.maximum(down, down).T @ rhs)
        total = pto.alloc((m, n), result, init=1)
        for _ in pto.range(2):
            total += lhs @ across.T
        pto.store(double, total)

    return trace(product, a=dtype, b=dtype, turned_a=dtype, turned_b=dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "portable"), [
    ((61, 65, 77), False), ((61, 65, 77), True), ((3, 200, 33), False), ((40, 7, 300), False), ((1, 1, 1), False)], ids=str)
def test_operands_are_read_as_they_lie(build_all: BuildAll, size: tuple[int, int, int], portable: bool) -> None:
    for dtype, built in build_all({dtype: Job(four_ways(*size, dtype)) for dtype in MATMUL_RESULT}, portable=portable).items():
        reads_operands_as_they_lie(built, size, dtype)


def reads_operands_as_they_lie(built: Built, size: tuple[int, int, int], dtype: DType) -> None:
    """Hold every product of `four_ways` against NumPy's."""
    m, n, inner = size
    lhs, rhs = numbers(dtype, m, inner), numbers(dtype, inner, n, seed=1)
    wide = MATMUL_RESULT[dtype].np

    def around(x: Array, row: int, col: int) -> Array:
        return np.ascontiguousarray(np.pad(x, ((row, 1), (col, 3)), constant_values=99))

    args = {"a": around(lhs, 1, 2), "b": around(rhs, 1, 2), "turned_a": around(lhs.T, 2, 1), "turned_b": around(rhs.T, 2, 1),
            **{name: np.zeros((m, n), wide) for name in ("plain", "left", "right", "both", "tiles", "double")}}
    assert built(args) == 0
    expected = lhs.astype(wide) @ rhs.astype(wide)
    for name in ("plain", "left", "right", "both", "tiles"):
        np.testing.assert_array_equal(args[name], expected, err_msg=f"{name} of {dtype}")
    np.testing.assert_array_equal(args["double"], 2 * expected + 1, err_msg=str(dtype))


def test_no_transposed_copy_is_made() -> None:
    def product(q: In[Tile[16, 32, I8]], keys: In[Tile[64, 32, I8]], out: Out[Tile[16, 64, I32]]) -> None:
        pto.store(out, q @ keys.T)

    code = emit_kernel(run_kernel_passes(trace(product)), "product", {"q": True, "keys": True, "out": True})
    assert "pto_matmul_short_i8(out, out_step, q, q_step, keys, keys_step, args[0].extent[0], 16, 64, 32, " in code.text
    assert "PTO_MATMUL_TRANSPOSE_B, matmul_work);" in code.text
    assert "transpose" not in code.text


def test_sums_go_to_the_output_unless_it_is_read_or_short(build_all: BuildAll) -> None:
    def product(a: In[Tile[70, 70, F32]], b: In[Tile[70, 70, F32]], out: Out[Tile[70, 70, F32]]) -> None:
        pto.store(out, a @ b)

    def in_place(x: InOut[Tile[70, 70, F32]], b: In[Tile[70, 70, F32]]) -> None:
        pto.store(x, x @ b)

    ways = build_all({"whole": Job(trace(product)), "in place": Job(trace(in_place))})
    a, b = numbers(F32, 70, 70), numbers(F32, 70, 70, seed=1)
    assert "pto_matmul_short_f32(out, out_step, " in ways["whole"].code.text
    for rows, cols in ((70, 70), (70, 5), (7, 70)):
        around = np.full((72, 76), 0.5, np.float32)
        ways["whole"]({"a": a, "b": b, "out": around[1:1 + rows, 2:2 + cols]})
        np.testing.assert_array_equal(around[1:1 + rows, 2:2 + cols], (a @ b)[:rows, :cols])
        assert (around == 0.5).sum() == around.size - rows * cols
    shared, x = a.copy(), a.copy()
    ways["whole"]({"a": shared, "b": b, "out": shared}, stage=["a"])
    ways["in place"]({"x": x, "b": b})
    np.testing.assert_array_equal(shared, a @ b)
    np.testing.assert_array_equal(x, a @ b)


@pytest.mark.slow
def test_same_sums_whatever_the_tile(build: Build) -> None:
    """The order of a sum depends on nothing but its length: rows and columns of a larger product have the same bits."""
    def whole(a: In[Tile[40, 700, F32]], b: In[Tile[700, 90, F32]], out: Out[Tile[40, 90, F32]]) -> None:
        pto.store(out, a @ b)

    def part(a: In[Tensor], b: In[Tensor], row: Scalar[I32], out: Out[Tile[2, 90, F32]], column: Out[Tile[40, 1, F32]]) -> None:
        pto.store(out, pto.load(a, (row, 0), shape=(2, 700)) @ pto.load(b, (0, 0), shape=(700, 90)))
        pto.store(column, pto.load(a, (0, 0), shape=(40, 700)) @ pto.load(b, (0, row), shape=(700, 1)))

    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((40, 700), np.float32), rng.standard_normal((700, 90), np.float32)
    everything = {"a": a, "b": b, "out": np.zeros((40, 90), np.float32)}
    build(trace(whole))(everything)
    few = {"a": a, "b": b, "row": 17, "out": np.zeros((2, 90), np.float32), "column": np.zeros((40, 1), np.float32)}
    build(trace(part, a=F32, b=F32))(few)
    np.testing.assert_array_equal(few["out"], everything["out"][17:19])
    np.testing.assert_array_equal(few["column"], everything["out"][:, 17:18])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 5, 12, 29, 30])
def test_rows_that_are_left_out_count_as_zeros(build: Build, rows: int) -> None:
    """They are not multiplied one by one, but their results are there: 0, or NaN where the other operand is infinite."""
    def product(a: In[Tile[30, 40, F32]], b: In[Tile[40, 33, F32]], total: Out[Tile[1, 33, F32]], out: Out[Tile[30, 33, F32]],
                more: In[Tensor], n: Scalar[I32], last: Out[Tile[30, 33, F32]]) -> None:
        sums = a @ b
        pto.store(out, sums)
        pto.store(total, pto.colsum(sums + 1))
        pto.store(last, pto.load(more, (2, 0), shape=(30, 40), valid=(n, 39)) @ b)

    a, b, more = numbers(F32, 30, 40), numbers(F32, 40, 33, seed=1), numbers(F32, 40, 40, seed=2)
    b[3, 7] = np.inf
    short = np.zeros_like(a)
    short[:rows] = a[:rows]
    piece = np.zeros_like(a)
    piece[:rows, :39] = more[2:2 + rows, :39]
    args = {"a": a[:rows], "b": b, "total": np.zeros((1, 33), np.float32), "out": np.zeros((30, 33), np.float32), "more": more, "n": rows,
            "last": np.zeros((30, 33), np.float32)}
    assert build(trace(product, more=F32))(args) == 0
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(args["out"], short @ b)
        np.testing.assert_array_equal(args["total"], (short @ b + 1).sum(0, keepdims=True))
        np.testing.assert_array_equal(args["last"], piece @ b)


@pytest.mark.slow
def test_rows_that_are_left_out_are_filled_for_other_readers(build: Build) -> None:
    """A sum, a narrow product, a product that accumulates: they read every row of the tile; and a fill may be other than 0."""
    def readers(a: In[Tile[30, 40, F32]], b: In[Tile[40, 33, F32]], w: In[Tile[40, 4, F32]], more: In[Tile[30, 40, F32]],
                again: In[Tile[30, 40, F32]], total: Out[Tile[1, 40, F32]], wide: Out[Tile[30, 33, F32]], narrow: Out[Tile[30, 4, F32]],
                top: Out[Tile[30, 33, F32]], held: Out[Tile[30, 33, F32]], filled: Out[Tile[30, 33, F32]]) -> None:
        pto.store(total, pto.colsum(a + 1))
        pto.store(wide, a @ b)
        pto.store(narrow, more @ w)
        pto.store(top, more @ b)
        acc = pto.alloc((30, 33), F32, init=2)
        for _ in pto.range(3):
            acc += again @ b
        pto.store(held, acc)
        pto.store(filled, pto.load(again, fill=1.0) @ b)

    rows = 17
    inputs = {"a": numbers(F32, 30, 40), "b": numbers(F32, 40, 33, seed=1), "w": numbers(F32, 40, 4, seed=2),
              "more": numbers(F32, 30, 40, seed=3), "again": numbers(F32, 30, 40, seed=4)}
    a, more, again = (np.where(np.arange(30)[:, None] < rows, inputs[name], np.float32(0)) for name in ("a", "more", "again"))
    for name in ("a", "more", "again"):
        inputs[name] = inputs[name][:rows]   # what follows in memory is not 0
    shapes = {"total": (1, 40), "wide": (30, 33), "narrow": (30, 4), "top": (30, 33), "held": (30, 33), "filled": (30, 33)}
    args = {**inputs, **{name: np.zeros(shape, np.float32) for name, shape in shapes.items()}}
    assert build(trace(readers))(args) == 0
    b, w = inputs["b"], inputs["w"]
    expected = {"total": (a + 1).sum(0, keepdims=True), "wide": a @ b, "narrow": more @ w, "top": more @ b, "held": 3 * (again @ b) + 2,
                "filled": np.where(np.arange(30)[:, None] < rows, again, np.float32(1)) @ b}
    for name, want in expected.items():
        np.testing.assert_array_equal(args[name], want, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [(), ("out",), ("a",)], ids=str)
@pytest.mark.parametrize(("given", "rows"), [(17, 17), (9, 17), (17, 9), (30, 13), (0, 4), (30, 30), (5, 0)])
def test_rows_that_are_not_kept_are_not_touched(build: Build, given: int, rows: int, stage: tuple[str, ...]) -> None:
    """Fewer rows of the output than of the operand, or more: those are 0; and what lies behind the output stays."""
    def product(a: In[Tile[30, 40, F32]], b: In[Tile[40, 33, F32]], out: Out[Tile[30, 33, F32]]) -> None:
        sums = a @ b
        pto.store(out, sums * 2 + 1)

    built = build(trace(product), ragged=("out",))
    assert "row < args[2].extent[0]" in built.code.text
    assert "b, b_step, args[0].extent[0], args[2].extent[0], 33, 40, 0, " in built.code.text
    a, b, whole = numbers(F32, 30, 40), numbers(F32, 40, 33, seed=1), np.full((31, 33), 7, np.float32)
    assert built({"a": a[:given], "b": b, "out": whole[:rows]}, stage) == 0
    sums = np.where(np.arange(30)[:, None] < given, a, np.float32(0)) @ b
    np.testing.assert_array_equal(whole[:rows], (sums * 2 + 1)[:rows])
    assert (whole[rows:] == 7).all()
