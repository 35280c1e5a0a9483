"""Vector kernels on the emulated core, compared with NumPy: each op with shapes, dtypes, broadcasts and ways to lie in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, ceildiv, kernel, maximum, minimum, pto
from tests.npu.harness import A2A3_FAST
from tests.npu.kernels.batch import Array, Bound, Case, check

F32, F16, BF16, I32, I16 = DType.F32, DType.F16, DType.BF16, DType.I32, DType.I16
FAMILIES = pytest.mark.parametrize("family", A2A3_FAST)
# Of functions and sums: the device adds up in another order than NumPy, and its functions differ by some units in the last place.
RTOL = {F32: 2e-6, F16: 2e-3, BF16: 1.6e-2}
Shape = tuple[int, int]


def data(shape: Shape, dtype: DType, seed: int, low: float = -8, high: float = 8) -> Array:
    """Return numbers that no sum or product of a few takes out of range."""
    found = np.random.default_rng(seed).uniform(low, high, shape)
    return (found if dtype.is_float else np.rint(found)).astype(dtype.np)


def binary(op: str, dtype: DType, lhs: Shape, rhs: Shape) -> Kernel:
    rows, cols = max(lhs[0], rhs[0]), max(lhs[1], rhs[1])

    @kernel
    def binary_(x: In[Tile[lhs[0], lhs[1], dtype]], y: In[Tile[rhs[0], rhs[1], dtype]], out: Out[Tile[rows, cols, dtype]]) -> None:
        pto.store(out, getattr(pto, op)(x, y))

    return binary_


def unary(op: str, dtype: DType, shape: Shape, to: Shape | None = None) -> Kernel:
    rows, cols = to or shape

    @kernel
    def unary_(x: In[Tile[shape[0], shape[1], dtype]], out: Out[Tile[rows, cols, dtype]]) -> None:
        pto.store(out, getattr(pto, op)(x))

    return unary_


def numbers(dtype: DType, shape: Shape) -> Kernel:
    @kernel
    def numbers_(x: In[Tile[shape[0], shape[1], dtype]], out: Out[Tile[shape[0], shape[1], dtype]], n: Scalar[dtype]) -> None:
        y = pto.maximum(pto.minimum(3 - x, x * 2 + n), n - x) - 1
        pto.store(out, y / 3 + 2 / (pto.abs(x) + 1) if dtype.is_float else y)

    return numbers_


def plain(k: Kernel, out: Shape, dtype: DType, rtol: float = 0.0, **given: Array) -> Case:
    arguments = {name: Bound.plain(array) for name, array in given.items()}
    return Case(k, {**arguments, "out": Bound.plain(np.zeros(out, dtype.np))}, rtol=rtol, atol=rtol)


def broadcasts() -> Iterator[Case]:
    pairs = (((5, 7), (5, 7)), ((5, 7), (5, 1)), ((5, 1), (5, 7)), ((5, 7), (1, 7)), ((1, 7), (5, 7)), ((5, 7), (1, 1)), ((1, 1), (5, 7)),
             ((5, 1), (1, 7)), ((1, 7), (5, 1)), ((5, 1), (5, 1)), ((5, 1), (1, 1)), ((1, 1), (1, 8)), ((1, 1), (1, 1)),
             ((16, 128), (16, 1)))
    for (lhs, rhs), op in product(pairs, ("sub", "div", "add")):
        shape = max(lhs[0], rhs[0]), max(lhs[1], rhs[1])
        yield plain(binary(op, F32, lhs, rhs), shape, F32, x=data(lhs, F32, 1), y=data(rhs, F32, 2))


def dtypes() -> Iterator[Case]:
    for dtype, op in product((F16, BF16, I32, I16), ("add", "sub", "mul", "maximum", "minimum")):
        yield plain(binary(op, dtype, (5, 19), (5, 1)), (5, 19), dtype, x=data((5, 19), dtype, 3), y=data((5, 1), dtype, 4))
    for dtype in (F32, F16, BF16, I32, I16):
        for op in ("abs", "neg", "relu"):
            yield plain(unary(op, dtype, (3, 9)), (3, 9), dtype, x=data((3, 9), dtype, 5))
        k = numbers(dtype, (5, 7))
        case = plain(k, (5, 7), dtype, RTOL.get(dtype, 0.0), x=data((5, 7), dtype, 6))
        yield Case(k, {**case.arguments, "n": 5}, rtol=case.rtol, atol=case.atol)


def functions() -> Iterator[Case]:
    for dtype, op, shape in product((F32, F16, BF16), ("exp", "log", "sqrt", "rsqrt", "recip"), ((5, 7), (1, 1), (9, 1))):
        yield plain(unary(op, dtype, shape), shape, dtype, RTOL[dtype], x=data(shape, dtype, 7, 0.25, 4))


def reductions() -> Iterator[Case]:
    for dtype, shape in product((F32, F16, BF16, I32, I16), ((5, 7), (1, 8), (9, 1), (1, 1), (16, 33))):
        rtol = RTOL.get(dtype, 0.0)
        for op in ("rowsum", "rowmax", "rowmin", "rowprod", "rowmean")[:None if dtype.is_float else -1]:
            x = data(shape, dtype, 8, 0.5, 1.5) if op == "rowprod" else data(shape, dtype, 8)
            yield plain(unary(op, dtype, shape, (shape[0], 1)), (shape[0], 1), dtype, 4 * rtol, x=x)
        for op in ("colsum", "colmax", "colmin", "colmean")[:None if dtype.is_float else -1]:
            yield plain(unary(op, dtype, shape, (1, shape[1])), (1, shape[1]), dtype, 4 * rtol, x=data(shape, dtype, 9))


@kernel
def shifted(x: In[Tile[6, 10, F32]], y: In[Tile[6, 1, F32]], z: In[Tile[1, 10, F32]], out: Out[Tile[6, 10, F32]],
            col: Out[Tile[6, 1, F32]], row: Out[Tile[1, 10, F32]]) -> None:
    pto.store(out, x * 2 + y - z)
    pto.store(col, y + 1)
    pto.store(row, z + 2)


@kernel
def shifted_bf16(x: In[Tile[6, 10, BF16]], y: In[Tile[6, 1, BF16]], z: In[Tile[1, 10, BF16]], out: Out[Tile[6, 10, BF16]],
                 col: Out[Tile[6, 1, BF16]], row: Out[Tile[1, 10, BF16]]) -> None:
    pto.store(out, x * 2 + y - z)
    pto.store(col, y + 1)
    pto.store(row, z + 2)


def lies() -> Iterator[Case]:
    for k, dtype in ((shifted, F32), (shifted_bf16, BF16)):
        shapes = {"x": (6, 10), "y": (6, 1), "z": (1, 10), "out": (6, 10), "col": (6, 1), "row": (1, 10)}
        arrays = {name: data(shape, dtype, seed) for seed, (name, shape) in enumerate(shapes.items())}
        yield Case(k, {name: Bound.plain(array) for name, array in arrays.items()})
        yield Case(k, {name: Bound.turned(array) for name, array in arrays.items()})
        for down, across in ((2, 1), (1, 3), (3, 2)):
            yield Case(k, {name: Bound.spread(array, down, across) for name, array in arrays.items()})


@kernel
def relu_rows(x: In[Tile[16, 24, F32]], gamma: In[Tile[1, 24, F32]], out: Out[Tile[16, 24, F32]], scale: Scalar[F32]) -> None:
    y = pto.relu(x) * scale * gamma
    pto.store(out, y - pto.rowmax(y))


@kernel
def column_sums(x: In[Tile[16, 24, F32]], out: Out[Tile[1, 24, F32]]) -> None:
    pto.store(out, pto.colsum(x + 1))


def ragged() -> Iterator[Case]:
    gamma = Bound.plain(data((1, 24), F32, 1))
    for n, group in product((0, 1, 5, 16), (0, None)):
        x, out = (Bound.plain(data((n, 24), F32, seed)).ragged(group=group) for seed in (2, 3))
        yield Case(relu_rows, {"x": x, "gamma": gamma, "out": out, "scale": 0.5})
        yield Case(column_sums, {"x": x, "out": Bound.plain(np.zeros((1, 24), np.float32))}, atol=2e-5)
    for n, more in ((3, 5), (0, 16), (16, 16)):      # rows that are not given are zeros
        x, out = (Bound.plain(data((rows, 24), F32, 3)).ragged() for rows in (n, more))
        yield Case(relu_rows, {"x": x, "gamma": gamma, "out": out, "scale": 0.5})
    for n in (1, 7, 24):
        x, out = (Bound.plain(data((16, n), F32, seed)).ragged(cols=True) for seed in (4, 5))
        wide = Bound.plain(data((1, n), F32, 6)).ragged(cols=True)
        yield Case(relu_rows, {"x": x, "gamma": wide, "out": out, "scale": 2.0})
        yield Case(column_sums, {"x": x, "out": wide}, atol=2e-5)


@kernel
def blocks(x: In[Tensor], out: Out[Tensor], peak: Out[Tile[1, 12, F32]]) -> None:
    most = pto.alloc((1, 12), F32, init=-100)
    for j in pto.range(ceildiv(x.shape[0], 8)):
        rest = x.shape[0] - j * 8
        block = pto.load(x, (j * 8, 2), shape=(8, 12), valid=(rest, 12), fill=-50)
        most[:] = pto.maximum(most, pto.colmax(block))
        pto.store(out, block - most, (j * 8, 0), valid=(rest, 12))
    pto.store(peak, most)


@kernel
def softmax(x: In[Tensor], out: Out[Tensor]) -> None:
    n_rows, n_cols = x.shape
    row_max = pto.alloc((16, 1), F32, init=-math.inf)
    row_sum = pto.alloc((16, 1), F32, init=0)
    for start in pto.range(0, n_cols, 32):
        there = (n_rows, minimum(32, n_cols - start))
        block = pto.load(x, (0, start), shape=(16, 32), valid=there, fill=-math.inf)
        new_max = pto.maximum(row_max, pto.rowmax(block))
        row_sum[:] = row_sum * pto.exp(row_max - new_max) + pto.rowsum(pto.exp(block - new_max))
        row_max[:] = new_max
    share = 1 / row_sum
    for start in pto.range(0, n_cols, 32):
        there = (n_rows, minimum(32, n_cols - start))
        pto.store(out, pto.exp(pto.load(x, (0, start), shape=(16, 32), valid=there) - row_max) * share, (0, start), valid=there)


@kernel
def again(x: In[Tile[4, 8, F32]], state: InOut[Tile[4, 8, F32]], part: InOut[Tensor]) -> None:
    pto.store(state, state + x)
    pto.store(state, pto.load(state) * 2)
    for j in pto.range(3):
        pto.store(part, pto.load(part, (j, 0), shape=(2, 8)) + 1, (j + 1, 0))


@kernel
def turned(x: In[Tensor], out: Out[Tile[9, 5, F32]], n: Scalar[I32]) -> None:
    pto.store(out, pto.load(x, (1, 2), shape=(5, 9), valid=(4, n), fill=3, transpose=True) * 2)


@kernel
def branches(x: In[Tile[4, 8, F32]], out: InOut[Tile[4, 8, F32]], n: Scalar[I32]) -> None:
    state = pto.alloc((4, 8), F32)
    with pto.when(n > 2):
        state[:] = x * 2
    with pto.otherwise():
        state[:] = out - x
    before = state + 0
    old = state * 1
    for j in pto.range(n):
        state += old
        state[:] = pto.maximum(state, before) - j
    pto.store(out, state + before)


@kernel
def constants(out: Out[Tile[3, 5, F32]], col: Out[Tile[3, 1, I32]], n: Scalar[F32]) -> None:
    pto.store(out, pto.full((3, 5), n, F32) + pto.ones((1, 5), F32) * pto.constant(2.5) - pto.zeros((3, 1), F32))
    pto.store(col, pto.full((3, 1), 7, I32))


@kernel
def crossed(x: In[Tile[4, 8, F32]], out: Out[Tile[4, 8, F32]], other: Out[Tile[4, 8, F32]], n: Scalar[I32]) -> None:
    one, two = pto.alloc((4, 8), F32, init=1), pto.alloc((4, 8), F32, init=2)
    for _ in pto.range(n):
        grown = one + x
        doubled = one * 2            # of what `one` was, in which `grown` could be made
        one[:] = grown
        two[:] = two - doubled
    pto.store(out, one)
    pto.store(other, two)


@kernel
def scalars(x: In[Tile[4, 8, F32]], out: Out[Tile[4, 8, F32]], a: Scalar[F32], n: Scalar[I32], h: Scalar[F16]) -> None:
    y = x * minimum(a, 1.5) + (a * 2.5 + 1) / n - (a // 0.7)
    pto.store(out, (y + (a > 1).where(a, 2.5) + a % 0.3 + n // 3 - maximum(n, 4)) * h)


def loops() -> Iterator[Case]:
    for n in (1, 8, 21):
        x = Bound.plain(data((n, 16), F32, 1)).ragged()
        out = Bound.plain(np.zeros((n, 12), np.float32)).ragged()
        yield Case(blocks, {"x": x, "out": out, "peak": Bound.plain(np.zeros((1, 12), np.float32))}, {"x": F32, "out": F32})
    for n in (0, 1, 3, 9):
        x = Bound.plain(data((6, 12), F32, 1))
        yield Case(turned, {"x": x, "out": Bound.plain(np.zeros((9, 5), np.float32)), "n": n}, {"x": F32})
        yield Case(branches, {"x": Bound.plain(data((4, 8), F32, 1)), "out": Bound.plain(data((4, 8), F32, 2)), "n": n})
    for rows, cols in ((1, 32), (5, 40), (16, 7), (0, 9)):
        for group in (0, None):
            x = Bound.plain(data((rows, cols), F32, 1)).ragged(group=group).ragged(cols=True, group=group)
            out = Bound.plain(np.zeros((rows, cols), np.float32)).ragged(group=group).ragged(cols=True, group=group)
            yield Case(softmax, {"x": x, "out": out}, {"x": F32, "out": F32}, rtol=1e-5)
    tensor = Bound.plain(data((5, 8), F32, 4))
    yield Case(again, {"x": Bound.plain(data((4, 8), F32, 1)), "state": Bound.plain(data((4, 8), F32, 2)), "part": tensor}, {"part": F32})
    for n in (0, 1, 4):
        square = {name: Bound.plain(np.rint(data((4, 8), F32, 1))) for name in ("x", "out", "other")}
        yield Case(crossed, {**square, "n": n})
    for a, n in ((1.25, 7), (-0.8, -2)):
        square = {name: Bound.plain(data((4, 8), F32, 1)) for name in ("x", "out")}
        yield Case(scalars, {**square, "a": a, "n": n, "h": 0.3}, rtol=1e-5, atol=1e-5)
    yield Case(constants, {"out": Bound.plain(np.zeros((3, 5), np.float32)), "col": Bound.plain(np.zeros((3, 1), np.int32)), "n": 1.5})


@pytest.mark.slow
@FAMILIES
def test_broadcasts(family: str) -> None:
    check(list(broadcasts()), family)


@pytest.mark.slow
@FAMILIES
def test_dtypes(family: str) -> None:
    check(list(dtypes()), family)


@pytest.mark.slow
@FAMILIES
def test_functions(family: str) -> None:
    check(list(functions()), family)


@pytest.mark.slow
@FAMILIES
def test_reductions(family: str) -> None:
    check(list(reductions()), family)


@pytest.mark.slow
@FAMILIES
def test_ways_to_lie_in_memory(family: str) -> None:
    check(list(lies()), family)


@pytest.mark.slow
@FAMILIES
def test_extents_known_at_run_time(family: str) -> None:
    check(list(ragged()), family)


@pytest.mark.slow
@FAMILIES
def test_loops_branches_and_buffers(family: str) -> None:
    check(list(loops()), family)
