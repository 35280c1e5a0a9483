# ruff: noqa: F821
"""What NumPy's functions mean in a traced body: the traced function, evaluated, gives what NumPy gives on the arrays themselves.

A dimension of extent `t` is a symbol: the trace never sees the number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, Tensor, jit, tt

F32, I32, BOOL = DType.F32, DType.I32, DType.BOOL
RNG = np.random.default_rng(7)
X = RNG.standard_normal((5, 4, 6), np.float32)
M = RNG.standard_normal((5, 6), np.float32)
V = RNG.standard_normal(6, np.float32)
N = RNG.integers(-9, 9, (5, 6), np.int32)

OF_X: list[tuple[str, Callable[[Any], Any]]] = [
    *((f"{f.__name__} {axis} {keep}", lambda x, f=f, axis=axis, keep=keep: f(x, axis=axis, keepdims=keep))
      for f in (np.sum, np.mean, np.max, np.min, np.var) for axis in (None, 0, 1, 2, -1, (0, 2), (1, 2)) for keep in (False, True)),
    ("prod", lambda x: np.prod(x, axis=1)), ("prod of rows", lambda x: x.prod(-1)), ("std", lambda x: np.std(x, axis=0, ddof=1)),
    ("any", lambda x: np.any(x > 2, axis=1)), ("all", lambda x: np.all(x > -2, axis=(0, 1))), ("count", lambda x: np.sum(x > 0, axis=1)),
    *((f"argmax {axis}", lambda x, axis=axis: np.argmax(x, axis=axis)) for axis in (None, 0, 1, 2)),
    ("argmin kept", lambda x: np.argmin(x, axis=1, keepdims=True)), ("ptp", lambda x: x.max(0) - x.min(0)),
    ("cumsum", lambda x: np.cumsum(x, axis=1)), ("cumsum of all", lambda x: x.cumsum()), ("add.reduce", lambda x: np.add.reduce(x, axis=1)),
    ("maximum.reduce", lambda x: np.maximum.reduce(x)), ("add.accumulate", lambda x: np.add.accumulate(x, axis=2)),
    ("reshape", lambda x: x.reshape(-1, 24)), ("reshape t", lambda x: x.reshape(x.shape[0], 2, -1)), ("ravel", lambda x: np.ravel(x)),
    ("reshape t * 2", lambda x: x.reshape(x.shape[0] * 2, -1)), ("T", lambda x: x.T), ("transpose", lambda x: x.transpose(1, 0, 2)),
    ("np.transpose", lambda x: np.transpose(x, (2, 0, 1))), ("swapaxes", lambda x: x.swapaxes(0, -1)),
    ("moveaxis", lambda x: np.moveaxis(x, 0, -1)), ("moveaxis of two", lambda x: np.moveaxis(x, (0, 1), (2, 0))),
    ("expand_dims", lambda x: np.expand_dims(x, (0, 2))), ("squeeze", lambda x: np.squeeze(x[:, None])), ("None", lambda x: x[:, None, ...,
                                                                                                                              None]),
    ("broadcast_to", lambda x: np.broadcast_to(x[:, :1], x.shape)), ("flip", lambda x: np.flip(x, 1)), ("flip all", lambda x: np.flip(x)),
    ("[::-1]", lambda x: x[::-1]), ("[:, ::-2]", lambda x: x[:, ::-2]), ("[3:0:-1]", lambda x: x[:, 3:0:-1]), ("[::2]", lambda x: x[::2]),
    ("[1:, -3:-1]", lambda x: x[1:, -3:-1]), ("[:99]", lambda x: x[:99]), ("[9:]", lambda x: x[9:]), ("[-2:]", lambda x: x[-2:]),
    ("[:-1]", lambda x: x[:-1]), ("[-1]", lambda x: x[-1]), ("[..., 0]", lambda x: x[..., 0]), ("[1, 2:]", lambda x: x[1, 2:]),
    ("of views", lambda x: x[1:][:2][:, 1:3][0]), ("blocks", lambda x: x[2:4] * 2), ("1:99:3", lambda x: x[1:99:3]),
    ("split", lambda x: np.split(x, 2, axis=-1)[1]), ("split at", lambda x: np.split(x, [1, 3], axis=1)[1]),
    ("concatenate", lambda x: np.concatenate([x, x[:1]], axis=0)), ("concatenate 2", lambda x: np.concatenate([x, -x], axis=2)),
    ("stack", lambda x: np.stack([x, x + 1], axis=1)), ("stack -1", lambda x: np.stack([x, x + 1], axis=-1)),
    ("hstack", lambda x: np.hstack([x, x])), ("vstack", lambda x: np.vstack([x, x])), ("repeat", lambda x: np.repeat(x, 3, axis=1)),
    ("tile", lambda x: np.tile(x, (2, 1, 3))), ("pad", lambda x: np.pad(x, ((0, 1), (2, 0), (0, 0)), constant_values=7)),
    ("tril", lambda x: np.tril(x, 1)), ("triu", lambda x: np.triu(x, -1)), ("roll", lambda x: np.roll(x, 2, axis=0)),
    ("diff", lambda x: np.diff(x, axis=1)), ("where", lambda x: np.where(x > 0, x, -1)), ("where numbers", lambda x: np.where(x > 0, 1.0,
                                                                                                                              0.5)),
    ("clip", lambda x: np.clip(x, -0.5, 0.5)), ("clip max", lambda x: x.clip(None, 0.5)), ("round", lambda x: np.round(x)),
    ("sort", lambda x: np.sort(x, axis=1)), ("argsort", lambda x: np.argsort(x, axis=-1)), ("sort rows", lambda x: np.sort(x)),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1)),
    ("einsum", lambda x: np.einsum("tij,tkj->tik", x, x)), ("einsum sum", lambda x: np.einsum("tij->ti", x)),
    ("einsum outer", lambda x: np.einsum("ti,tj->tij", x[:, 0], x[:, 1])), ("einsum two", lambda x: np.einsum("tij,tij->t", x, x)),
    ("einsum implicit", lambda x: np.einsum("tij,kj", x, x[0])), ("einsum turned", lambda x: np.einsum("tij->jit", x)),
    ("matmul", lambda x: x @ x.swapaxes(1, 2)), ("matmul 1", lambda x: x @ x[0, 0]), ("matmul 2", lambda x: x[0, 0] @ x.swapaxes(1, 2)),
    ("dot of vectors", lambda x: x[0, 0] @ x[1, 1]), ("outer", lambda x: np.outer(x[0, 0], x[1, 1])), ("abs", lambda x: abs(x)),
    ("norm", lambda x: np.linalg.norm(x, axis=-1)), ("square", lambda x: np.square(x)), ("power", lambda x: abs(x) ** 1.5),
    ("divmod", lambda x: divmod(x, 0.5)[1]), ("logic", lambda x: np.logical_and(x > 0, ~(x > 1)) | (x < -1)), ("isnan",
                                                                                                               lambda x: np.isnan(x)),
    ("hypot by hand", lambda x: np.sqrt(x * x + x[:, :1] * x[:, :1])), ("maximum", lambda x: np.maximum(x, x[:1])),
    ("float32 number", lambda x: np.float32(2) * x), ("captured", lambda x: x * V), ("astype", lambda x: x.astype(np.int32)),
    ("copy", lambda x: x.copy()), ("zeros_like", lambda x: np.zeros_like(x) + x), ("full_like", lambda x: np.full_like(x, 3)),
    ("ones_like int", lambda x: np.ones_like(x, dtype=np.int32)), ("rint", lambda x: np.rint(x)), ("sizes",
                                                                                                   lambda x: x * (x.size // x.shape[1])),
    ("take", lambda x: np.take(x, [2, 0], axis=1)), ("list", lambda x: x[[2, 0, 2]]), ("table", lambda x: x[:, np.array([[1, 0], [3, 3]])]),
    ("table and int", lambda x: x[0, :, np.array([1, 0])]), ("table in the middle", lambda x: x[:, np.array([1, 0]), 2:]),
]


@pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in OF_X])
def test_a_function_means_what_it_means_on_arrays(function: Callable[[Any], Any]) -> None:
    @jit
    def traced(x: Tensor["t", 4, 6, F32]):
        tt.assume(x.shape[0] <= 64)
        tt.assume(x.shape[0] >= 3)
        return function(x)

    wanted = np.asarray(function(X))
    for found in (traced.reference(X), traced.python(X)):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
        if wanted.dtype == np.float32:
            assert found.dtype == np.float32


OF_N: list[tuple[str, Callable[[Any], Any]]] = [
    ("floordiv", lambda n: n // 4), ("mod", lambda n: n % 4), ("shift", lambda n: (n << 2) >> 1), ("bits", lambda n: (n & 6) | (n ^ 3)),
    ("invert", lambda n: ~n), ("sum", lambda n: n.sum(1)), ("compare", lambda n: (n >= 0) == (n > 2)), ("negative", lambda n: -n),
    ("clip", lambda n: np.clip(n, 0, 3)), ("sort", lambda n: np.sort(n, axis=0)), ("max", lambda n: np.max(n)),
]


@pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in OF_N])
def test_whole_numbers(function: Callable[[Any], Any]) -> None:
    @jit
    def traced(n: Tensor["t", 6, I32]):
        tt.assume(n.shape[0] <= 64)
        return function(n)

    np.testing.assert_array_equal(traced.reference(N), np.asarray(function(N)))


def run(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return what a body gives as a NumPy program; its traced form gives the same."""
    made = jit(function)
    first, second = (tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arrays) for _ in range(2))
    wanted, found = made.python(*first), made.reference(*second)
    for a, b in zip(wanted if isinstance(wanted, tuple) else (wanted,), found if isinstance(found, tuple) else (found,), strict=True):
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for a, b in zip(first, second, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
    return found


def test_every_name_of_a_value_sees_its_writes() -> None:
    def body(x: Tensor["t", 6, F32]):
        a = x * 2
        b = a[1:3]
        before = a + 0
        b += 1
        a[0] = -1
        b[0, 0:2] = a[0, 2:4]
        return a, b * 1, before

    a, b, before = run(body, M)
    wanted = M * 2
    wanted[1:3] += 1
    wanted[0] = -1
    wanted[1, 0:2] = -1
    np.testing.assert_array_equal(a, wanted)
    np.testing.assert_array_equal(b, wanted[1:3])
    np.testing.assert_array_equal(before, M * 2)


def test_a_value_that_a_loop_writes_is_state_from_the_start() -> None:
    def body(x: Tensor["t", 6, F32]):
        c = x * 1
        total = tt.zeros((6,))
        for i in tt.loop(x.shape[0]):
            total += c[0]
            c[0] = c[0] + x[i]
        return c, total

    c, total = run(body, M)
    expected, summed = M.copy(), np.zeros(6, np.float32)
    for row in M:
        summed += expected[0]
        expected[0] = expected[0] + row
    np.testing.assert_allclose(c, expected, rtol=1e-5)
    np.testing.assert_allclose(total, summed, rtol=1e-5)


def test_a_part_is_moved_within_its_tensor_as_if_it_were_copied_before() -> None:
    def body(x: Tensor["t", 6, F32]):
        a = x * 1
        a[1:] = a[:-1]
        a[:, 1:4] = a[:, 0:3]
        return a

    found = run(body, M)
    wanted = M.copy()
    wanted[1:] = wanted[:-1].copy()
    wanted[:, 1:4] = wanted[:, 0:3].copy()
    np.testing.assert_array_equal(found, wanted)


def test_an_inout_parameter_is_written_in_place() -> None:
    def body(x: Tensor["t", 6, F32], cache: InOut[Tensor["r", 6, F32]], slots: Injective[Tensor["t", I32]], m: Tensor["t", BOOL]):
        cache[slots] = x * 2
        cache[0] *= 2.0
        np.add.at(cache, slots // 2, x)
        cache[cache > 3] = 0
        return np.sum(x)

    cache, slots = np.ones((9, 6), np.float32), np.array([3, 0, 8, 5, 1], np.int32)
    assert run(body, M, cache, slots, M[:, 0] > 0).shape == ()


def test_loops_branches_and_scalars() -> None:
    def body(x: Tensor["t", 6, F32], lengths: Tensor["b", I32], scale: float = 2.0):
        out = tt.zeros((lengths.shape[0], 6))
        for b in tt.each(lengths.shape[0]):
            for j in tt.loop(0, lengths[b], 2):
                out[b] += np.sum(x[j:j + 2], axis=0)
            with tt.when((lengths[b] > 2) & (b > 0)):
                out[b] *= scale
            with tt.otherwise():
                out[b, 0] = tt.cast(lengths[b], F32)
        return out

    lengths = np.array([5, 0, 3, 2], np.int32)
    wanted = np.zeros((4, 6), np.float32)
    for b, n in enumerate(lengths):
        for j in range(0, n, 2):
            wanted[b] += M[j:j + 2].sum(0)
        if n > 2 and b > 0:
            wanted[b] *= 2
        else:
            wanted[b, 0] = n
    np.testing.assert_allclose(run(body, M, lengths), wanted, rtol=1e-5)


def test_products_widen_and_tables_group() -> None:
    def body(a: Tensor["m", 8, DType.I8], b: Tensor[8, 3, DType.I8], table: Tensor["m", 2, I32]):
        product = a @ b
        rows = tt.rows_of(table, 4)
        out = tt.zeros((table.shape[0] * 2,), I32)
        for e in tt.each(4):
            out[rows[e]] = 10 * tt.arange(rows[e].shape[0]) + e
        return product, out, rows.sizes, np.einsum("mk,kn->mn", a, b)

    a, b = RNG.integers(-128, 127, (5, 8), np.int8), RNG.integers(-128, 127, (8, 3), np.int8)
    table = RNG.integers(0, 4, (5, 2), np.int32)
    product, out, sizes, same = run(body, a, b, table)
    np.testing.assert_array_equal(product, a.astype(np.int32) @ b.astype(np.int32))
    np.testing.assert_array_equal(same, product)
    np.testing.assert_array_equal(sizes, np.bincount(table.ravel(), minlength=4))
    for e in range(4):
        np.testing.assert_array_equal(out[table.ravel() == e], 10 * np.arange(sizes[e]) + e)


def test_topk_falls_and_takes_the_lower_place() -> None:
    def body(x: Tensor["t", 6, F32]):
        best, places = tt.topk(x, 3)
        return best, places

    x = np.array([[1, 3, 3, np.nan, 0, 3], [5, 4, 3, 2, 1, 0]], np.float32)
    best, places = run(body, x)
    np.testing.assert_array_equal(places, [[3, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(best, [[np.nan, 3, 3], [5, 4, 3]])
