"""The interpreter: whole kernels against NumPy written out by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.ops.guards import guards_of
from pto_wsp.run.kernel_interpreter import run_kernel
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar
from pto_wsp.trace.kernel.definition import KernelDef

F32, I32 = DType.F32, DType.I32
RNG = np.random.default_rng(7)


def trace(function: Callable[..., object], **dtypes: DType) -> Kernel:
    """Trace a kernel; Tensor parameters are f32 unless told otherwise."""
    definition = KernelDef.from_function(function, {})
    return definition.trace({}, {p.name: F32 for p in definition.params} | dtypes)


def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return f32 noise."""
    return RNG.standard_normal(shape).astype(np.float32)


def rmsnorm(x: In[Tile[16, 128, F32]], out: Out[Tile[16, 128, F32]]) -> None:
    """The kernel of the quick start."""
    inv = pto.rsqrt(pto.rowmean(pto.mul(x, x)))
    pto.store(out, pto.mul(x, inv))


def attention(q: In[Tile[8, 16, F32]], keys: In[Tensor], values: In[Tensor], n: Scalar[I32],
              out: Out[Tile[8, 16, F32]]) -> None:
    """Flash attention over n rows in blocks of 4."""
    top = pto.alloc((8, 1), F32, init=-np.inf)
    total = pto.alloc((8, 1), F32, init=0)
    acc = pto.alloc((8, 16), F32, init=0)
    for j in pto.range((n + 3) // 4):
        rest = n - j * 4
        scores = q @ pto.load(keys, (j * 4, 0), shape=(4, 16), valid=(rest, None), transpose=True)
        scores = pto.where(pto.iota((1, 4)) < rest, scores, -np.inf)
        new_top = pto.maximum(top, pto.rowmax(scores))
        p = pto.exp(scores - new_top)
        shrink = pto.exp(top - new_top)
        total[:] = total * shrink + pto.rowsum(p)
        acc[:] = acc * shrink + p @ pto.load(values, (j * 4, 0), shape=(4, 16), valid=(rest, None))
        top[:] = new_top
    pto.store(out, acc / total)


def test_rmsnorm() -> None:
    x, out = normal(16, 128), np.zeros((16, 128), np.float32)
    assert run_kernel(trace(rmsnorm), {"x": x, "out": out}) is None
    np.testing.assert_allclose(out, x / np.sqrt((x * x).mean(1, keepdims=True)), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 4, 7, 16])
def test_attention_over_a_length_known_at_run_time(n: int) -> None:
    q, keys, values, out = normal(8, 16), normal(16, 16), normal(16, 16), np.zeros((8, 16), np.float32)
    assert run_kernel(trace(attention), {"q": q, "keys": keys, "values": values, "n": n, "out": out}) is None
    scores = (q @ keys[:n].T).astype(np.float64)
    p = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(1, keepdims=True) @ values[:n], rtol=2e-5, atol=1e-6)


def test_a_short_tile_is_filled_with_zeros_and_stored_in_part() -> None:
    def body(x: In[Tile[4, 8, F32]], s: Out[Tile[4, 1, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(s, pto.rowsum(x + 1))
        pto.store(y, x + 1)
    x, total, y = normal(3, 5), np.full((4, 1), -1, np.float32), np.full((6, 9), -1, np.float32)
    assert run_kernel(trace(body), {"x": x, "s": total, "y": y[:2, :7]}) is None
    padded = np.zeros((4, 8), np.float32)
    padded[:3, :5] = x
    np.testing.assert_allclose(total, (padded + 1).sum(1, keepdims=True), rtol=1e-6)
    assert (y[:2, :7] == (padded + 1)[:2, :7]).all()
    assert (y[2:] == -1).all() and (y[:, 7:] == -1).all()


def test_a_loaded_value_does_not_change_with_its_array() -> None:
    def body(x: InOut[Tile[1, 2, F32]], y: Out[Tile[1, 2, F32]]) -> None:
        old = pto.load(x)
        pto.store(x, old * 10)
        pto.store(y, old + x)
    x, y = np.array([[1, 2]], np.float32), np.zeros((1, 2), np.float32)
    run_kernel(trace(body), {"x": x, "y": y})
    assert x.tolist() == [[10, 20]] and y.tolist() == [[11, 22]]


def test_a_read_buffer_does_not_change_with_a_later_write() -> None:
    def body(y: Out[Tile[1, 1, I32]]) -> None:
        acc = pto.alloc((1, 1), I32, init=1)
        for i in pto.range(5):
            before = pto.load(acc)
            acc[:] = acc + before * i
        pto.store(y, acc)
    y = np.zeros((1, 1), np.int32)
    run_kernel(trace(body), {"y": y})
    expected = 1
    for i in range(5):
        expected += expected * i
    assert y.item() == expected


def test_loops_have_starts_and_steps() -> None:
    def body(n: Scalar[I32], y: Out[Tensor]) -> None:
        for i in pto.range(1, n, 3):
            for j in pto.range(i):
                pto.store(y, pto.full((1, 1), i * 10 + j, I32), (i, j))
    y = np.zeros((9, 9), np.int32)
    assert run_kernel(trace(body, y=I32), {"n": 8, "y": y}) is None
    expected = np.zeros((9, 9), np.int32)
    for i in range(1, 8, 3):
        expected[i, :i] = [i * 10 + j for j in range(i)]
    assert (y == expected).all()


def pieces(x: In[Tensor], row: Scalar[I32], valid: Scalar[I32], y: Out[Tensor]) -> None:
    """Move one piece of two rows."""
    pto.store(y, pto.load(x, (row, 1), shape=(2, 2), valid=(valid, None), fill=9), (row, 0), valid=(valid, None))


@pytest.mark.parametrize("row, valid, failed", [
    (0, 2, None), (2, 2, None), (3, 2, 0), (3, 1, None), (-1, 2, 0), (4, 0, None), (100, -5, None), (0, 7, None), (4, 1, 0),
])
def test_a_piece_outside_its_region_fails_its_guard(row: int, valid: int, failed: int | None) -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros((4, 2), np.float32)
    kernel = trace(pieces)
    assert [guard.what for guard in guards_of(kernel)] == ["load x[row, 1]", "store y[row, 0]"]
    assert run_kernel(kernel, {"x": x, "row": row, "valid": valid, "y": y}) == failed
    if failed is None:
        expected = np.zeros((4, 2), np.float32)
        n = min(max(valid, 0), 2)
        expected[row:row + n] = x[row:row + n, 1:]
        assert (y == expected).all()


def test_guards_are_numbered_in_preorder_and_the_first_that_fails_is_told() -> None:
    def body(x: In[Tensor], y: Out[Tensor]) -> None:
        pto.store(y, pto.load(x, (0, 0), shape=(1, 1)))
        for i in pto.range(4):
            pto.store(y, pto.load(x, (i, 0), shape=(1, 1)), (i, 0))
    kernel = trace(body)
    assert len(guards_of(kernel)) == 4
    y = np.zeros((2, 1), np.float32)
    assert run_kernel(kernel, {"x": np.ones((4, 1), np.float32), "y": y}) == 3
    assert (y == 1).all()


def test_scalars_are_rounded_and_wrapped_to_their_dtype() -> None:
    def body(a: Scalar[F32], n: Scalar[DType.I8], y: Out[Tile[1, 1, DType.F64]], z: Out[Tile[1, 1, I32]]) -> None:
        pto.store(y, pto.full((1, 1), a, DType.F64))
        pto.store(z, pto.full((1, 1), n + 100, DType.I32))
    y, z = np.zeros((1, 1)), np.zeros((1, 1), np.int32)
    run_kernel(trace(body), {"a": 0.1, "n": 100, "y": y, "z": z})
    assert y.item() == float(np.float32(0.1)) and z.item() == 200


def test_extents_of_parameters_are_scalars() -> None:
    def body(x: In[Tile[4, 8, F32]], r: In[Tensor], y: Out[Tile[1, 4, I32]]) -> None:
        for place, extent in enumerate((*x.valid, *r.shape)):
            pto.store(y, pto.full((1, 1), extent, I32), (0, place))
    y = np.zeros((1, 4), np.int32)
    run_kernel(trace(body), {"x": normal(3, 5), "r": normal(70, 9), "y": y})
    assert y.tolist() == [[3, 5, 70, 9]]


def test_views_with_strides_are_read_and_written_in_place() -> None:
    def body(x: In[Tile[4, 2, F32]], y: Out[Tile[4, 2, F32]]) -> None:
        pto.store(y, x)
    x, y = normal(8, 6), np.zeros((2, 4), np.float32)
    run_kernel(trace(body), {"x": x[::2, ::3], "y": y.T})
    assert np.array_equal(y.T, x[::2, ::3])


def test_triangles() -> None:
    def body(x: In[Tile[3, 4, F32]], low: Out[Tile[3, 4, F32]], up: Out[Tile[3, 4, F32]]) -> None:
        pto.store(low, pto.tril(x, 1))
        pto.store(up, pto.triu(x, -1))
    x, low, up = normal(3, 4), np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    run_kernel(trace(body), {"x": x, "low": low, "up": up})
    assert (low == np.tril(x, 1)).all() and (up == np.triu(x, -1)).all()
