"""Generated kernels against the NumPy meaning: tails, staging, guards, aliases, buffers, fusion."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.c.kernel import emit_kernel
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.passes.kernel.passes import run_kernel_passes
from pto_wsp.run.kernel_interpreter import run_kernel
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar
from pto_wsp.trace.kernel.definition import KernelDef
from tests.selected import selected

from ..conftest import Array, BuildAll, Built, Job

F32, I8, I32, U8, BOOL = DType.F32, DType.I8, DType.I32, DType.U8, DType.BOOL
Build = Callable[..., Built]
Kernels = Mapping[Hashable, Built]
EXACT: dict[str, float] = {"rtol": 0, "atol": 0}
CLOSE: dict[str, float] = {"rtol": 2e-6, "atol": 2e-6}


def trace(function: Callable[..., None], **tensors: DType) -> k.Kernel:
    """Return the kernel IR of a Python function, whose annotations may use names of the caller."""
    return KernelDef.from_function(function, sys._getframe(1).f_locals).trace({}, tensors)


def check(built: Built, args: Mapping[str, Array | int | float], stage: tuple[str, ...] = (), **tolerance: float) -> None:
    """Run C and the interpreter on copies of the same arguments and compare every array."""
    expected = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in args.items()}
    guard = run_kernel(built.kernel, expected)
    with np.errstate(all="ignore"):
        assert built(args, stage) == (0 if guard is None else 1 + guard)
    for name, want in expected.items():
        if isinstance(want, np.ndarray):
            np.testing.assert_allclose(args[name], want, **(tolerance or EXACT), equal_nan=True, err_msg=name)


def normal(*shape: int, seed: int = 0) -> Array:
    """Return normal f32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> Array:
    """Return f32 zeros."""
    return np.zeros(shape, np.float32)


def rmsnorm(x: In[Tile[16, 100, F32]], out: Out[Tile[16, 100, F32]]) -> None:
    pto.store(out, x * pto.rsqrt(pto.rowmean(x * x) + 1e-6))


def softmax(x: In[Tile[8, 200, F32]], out: Out[Tile[8, 200, F32]]) -> None:
    e = pto.exp(x - pto.rowmax(x))
    pto.store(out, e / pto.rowsum(e))


def attention(q: In[Tile[32, 16, F32]], kv: In[Tensor], n: Scalar[I32], scale: Scalar[F32], out: Out[Tile[32, 16, F32]]) -> None:
    acc, top = pto.alloc((32, 16), F32, init=0), pto.alloc((32, 1), F32, init=float("-inf"))
    total = pto.alloc((32, 1), F32, init=0)
    for j in pto.range(n):
        s = (q @ pto.load(kv, (j * 24, 0), shape=(16, 24), transpose=False)) * scale
        new = pto.maximum(top, pto.rowmax(s))
        p, shrink = pto.exp(s - new), pto.exp(top - new)
        total[:] = total * shrink + pto.rowsum(p)
        top[:] = new
        acc[:] = acc * shrink + p @ pto.load(kv, (j * 24, 0), shape=(24, 16))
    pto.store(out, acc / total)


def turns(a: In[Tile[8, 8, I32]], b: In[Tile[8, 8, I32]], out: Out[Tile[8, 8, I32]]) -> None:
    start = pto.abs(a @ b)
    acc = pto.alloc((8, 8), I32, init=0)
    for _ in pto.range(3):
        acc[:] = acc + start
        acc[:] = pto.abs(acc @ b) @ b
    pto.store(out, acc)


def twice(x: InOut[Tile[6, 40, F32]], out: Out[Tile[6, 40, F32]]) -> None:
    before = x + 0.0
    pto.store(x, before * 2.0 + pto.rowmax(before))
    pto.store(out, x - before)
    pto.store(x, x + 1.0)


def swap(x: InOut[Tile[4, 20, F32]], y: InOut[Tile[4, 20, F32]]) -> None:
    old = pto.load(x)
    pto.store(x, y)
    pto.store(y, old)


def shift(t: InOut[Tensor]) -> None:
    pto.store(t, pto.load(t, (0, 0), shape=(8, 16)), (1, 0))


def piece(t: In[Tensor], row: Scalar[I32], rows: Scalar[I32], out: Out[Tile[4, 8, F32]]) -> None:
    pto.store(out, pto.load(t, (row, 0), shape=(4, 8), valid=(rows, 8), fill=-1.0))


def pieces(a: In[Tensor], b: In[Tensor], n: Scalar[I32], out: Out[Tensor]) -> None:
    first = pto.load(a, (0, 0), shape=(2, 4))
    for j in pto.range(n):
        pto.store(out, pto.load(b, (j, 0), shape=(2, 4)) + first, (j * 2, 0))
    pto.store(out, first, (100, 0))


def wide_product(a: In[Tile[64, 32, F32]], t: In[Tensor], out: Out[Tile[64, 64, F32]]) -> None:
    pto.store(out, a @ pto.load(t, (0, 64), shape=(32, 64)))


def standard(x: In[Tile[24, 50, F32]], w: In[Tile[1, 50, F32]], out: Out[Tile[24, 50, F32]], top: Out[Tile[1, 50, F32]]) -> None:
    centred = x - pto.colmean(x)
    pto.store(out, centred * w + pto.colmax(pto.abs(centred)))
    pto.store(top, pto.colsum(x) + pto.colmin(x))


def wrap(x: In[Tile[4, 70, U8]], y: In[Tile[4, 70, I8]], a: Out[Tile[4, 70, U8]], b: Out[Tile[4, 1, I8]],
         c: Out[Tile[4, 70, BOOL]]) -> None:
    pto.store(a, (x + x) // 3 - x * x)
    pto.store(b, pto.rowsum(y * y + 100))
    pto.store(c, ((x + 1) > x) & pto.not_(y < 0))


def causal(s: In[Tile[20, 20, F32]], keep: In[Tile[20, 20, BOOL]], at: Scalar[I32], out: Out[Tile[20, 20, F32]],
           mask: Out[Tile[20, 20, BOOL]]) -> None:
    seen = (pto.iota((1, 20), I32, 1) <= pto.iota((20, 1), I32, 0) + at) & keep
    pto.store(mask, seen)
    pto.store(out, pto.where(seen, s, float("-inf")))


def collide(row: In[Tile[4, 8, F32]], col: Scalar[F32], args: In[Tile[4, 8, F32]], context: In[Tile[4, 8, F32]],
            scratch: Out[Tile[4, 8, F32]]) -> None:
    lane = pto.alloc((4, 8), F32, init=1)
    for pack in pto.range(2):
        lane[:] = lane * 2.0 + row * col + pto.cast(pto.full((4, 8), pack, I32), F32)
    pto.store(scratch, lane + args + context)


def named_like_sums(x: In[Tile[4, 8, F32]], w: In[Tile[4, 64, F32]], y: Out[Tile[4, 8, F32]], z: Out[Tile[4, 64, F32]]) -> None:
    s_total = x * 2
    s = pto.rowsum(s_total)
    r_lanes = w * 2
    r = pto.rowsum(r_lanes)
    pto.store(y, s_total + s)
    pto.store(z, r_lanes + r)


def turn(rows: int, cols: int, dtype: DType) -> k.Kernel:
    """Return a kernel that transposes a clipped piece."""
    def turn(t: In[Tensor], out: Out[Tile[rows, cols, dtype]]) -> None:  # type: ignore[valid-type]
        pto.store(out, pto.load(t, (1, 2), shape=(cols, rows), transpose=True, valid=(cols - 1, rows), fill=3))

    return trace(turn, t=dtype)


def product(m: int, n: int, inner: int, dtype: DType) -> k.Kernel:
    """Return a kernel with a product, and one that adds to a tile."""
    result = RESULT.get(dtype, dtype)

    def product(a: In[Tile[m, inner, dtype]], b: In[Tile[inner, n, dtype]], c: In[Tile[m, n, result]],  # type: ignore[valid-type]
                out: Out[Tile[m, n, result]], more: Out[Tile[m, n, result]]) -> None:  # type: ignore[valid-type]
        pto.store(out, a @ b)
        pto.store(more, pto.matmul(a, b, acc=c))

    return trace(product)


RESULT = {I8: I32}
TURNED = [(16, 16), (48, 32), (17, 40), (3, 70), (1, 5)]
MULTIPLIED = [(64, 64, 64), (61, 33, 77), (5, 1, 9), (1, 128, 300), (13, 96, 1), (12, 31, 600)]
ALONE: list[tuple[Callable[..., None], dict[str, DType]]] = [
    (rmsnorm, {}), (softmax, {}), (attention, {"kv": F32}), (turns, {}), (twice, {}), (swap, {}), (shift, {"t": F32}), (piece, {"t": F32}),
    (pieces, {"a": F32, "b": F32, "out": F32}), (wide_product, {"t": F32}), (standard, {}), (wrap, {}), (causal, {}), (collide, {}),
    (named_like_sums, {})]


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest, build_all: BuildAll) -> Kernels:
    """Return the kernels of this file that this run has tests of, compiled in one library."""
    jobs: dict[Hashable, Job] = {function: Job(trace(function, **tensors)) for function, tensors in ALONE}
    for strided in ("x", "out", "both"):
        jobs[rmsnorm, strided] = Job(trace(rmsnorm), {"x": strided == "out", "out": strided == "x"})
    for params in selected(request):
        match params:
            case {"m": m, "n": n, "inner": inner, "dtype": dtype}:
                jobs[product, m, n, inner, dtype] = Job(product(m, n, inner, dtype))
            case {"rows": rows, "cols": cols, "dtype": dtype}:
                for unit in (True, False):
                    jobs[turn, rows, cols, dtype, unit] = Job(turn(rows, cols, dtype), {"t": unit, "out": True})
    return build_all(jobs)


@pytest.mark.parametrize("rows", [16, 5, 1])
@pytest.mark.parametrize("cols", [100, 64, 3])
@pytest.mark.sampled(9)
def test_rmsnorm_stages_tails(kernels: Kernels, rows: int, cols: int) -> None:
    check(kernels[rmsnorm], {"x": normal(rows, cols), "out": zeros(rows, cols)}, **CLOSE)


def test_empty_binding_does_nothing(kernels: Kernels) -> None:
    check(kernels[rmsnorm], {"x": normal(0, 100), "out": zeros(0, 100)})


def test_softmax_keeps_infinities_and_nan_in_their_rows(kernels: Kernels) -> None:
    x = normal(8, 200)
    x[1, 3], x[2, 5], x[3, :] = -np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        check(kernels[softmax], {"x": x, "out": zeros(8, 200)}, **CLOSE)


def test_online_softmax_in_a_loop_over_buffers(kernels: Kernels) -> None:
    kv = normal(24 * 4, 24)
    check(kernels[attention], {"q": normal(32, 16), "kv": kv, "n": 4, "scale": 0.25, "out": zeros(32, 16)}, rtol=1e-5, atol=1e-5)


def test_what_a_loop_reads_in_every_turn_keeps_its_place(kernels: Kernels) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, (8, 8)).astype(np.int32) for _ in range(2))
    check(kernels[turns], {"a": a, "b": b, "out": np.zeros((8, 8), np.int32)})


def test_product_with_a_buffer_accumulates_in_place() -> None:
    def gemm(a: In[Tensor], b: In[Tensor], out: Out[Tile[8, 32, F32]]) -> None:
        acc = pto.alloc((8, 32), F32, init=0)
        for j in pto.range(4):
            acc += pto.load(a, (0, j * 16), shape=(8, 16)) @ pto.load(b, (j * 16, 0), shape=(16, 32))
        pto.store(out, acc)

    code = emit_kernel(run_kernel_passes(trace(gemm, a=F32, b=F32)), "gemm", {"a": True, "b": True, "out": True})
    assert "pto_matmul_f32(acc, 32, a, a_step, b, b_step, 8, 32, 16, PTO_MATMUL_ACCUMULATE, matmul_work);" in code.text
    assert code.matmuls == (F32,)


@pytest.mark.parametrize("strided", ["x", "out", "both"])
def test_columns_that_are_not_neighbours_are_staged(kernels: Kernels, strided: str) -> None:
    x = normal(16, 200)[:, ::2] if strided != "out" else normal(16, 100)
    out = zeros(16, 200)[:, ::2] if strided != "x" else zeros(16, 100)
    check(kernels[rmsnorm, strided], {"x": x, "out": out}, **CLOSE)


def test_negative_and_zero_row_strides(kernels: Kernels) -> None:
    check(kernels[rmsnorm], {"x": normal(16, 100)[::-1], "out": zeros(16, 100)[::-1]}, **CLOSE)
    one = np.broadcast_to(normal(1, 100), (16, 100))
    check(kernels[rmsnorm], {"x": one, "out": zeros(16, 100)}, **CLOSE)


def test_overlapping_arguments_are_copied_first(kernels: Kernels) -> None:
    """In and Out share rows one apart: each row must be read before any is written."""
    memory = normal(17, 100)
    expected = zeros(16, 100)
    run_kernel(trace(rmsnorm), {"x": memory[:16].copy(), "out": expected})
    assert kernels[rmsnorm]({"x": memory[:16], "out": memory[1:]}, stage=("x", "out")) == 0
    np.testing.assert_allclose(memory[1:], expected, **CLOSE)


def test_inout_reads_its_latest_store(kernels: Kernels) -> None:
    for stage in ((), ("x",)):
        check(kernels[twice], {"x": normal(6, 40), "out": zeros(6, 40)}, stage)
        check(kernels[twice], {"x": normal(4, 33), "out": zeros(4, 33)}, stage)


def test_value_read_before_a_store_keeps_what_it_was(kernels: Kernels) -> None:
    check(kernels[swap], {"x": normal(4, 20), "y": normal(4, 20, seed=1)})


def test_shifted_move_inside_one_tensor(kernels: Kernels) -> None:
    check(kernels[shift], {"t": normal(9, 16)})


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("row", "rows", "guard"), [(0, 4, None), (6, 4, None), (7, 4, 0), (-1, 4, 0), (40, 0, None), (8, 2, None),
                                                    (8, 9, 0), (0, -3, None)])
def test_guard_of_a_tensor_load(kernels: Kernels, row: int, rows: int, guard: int | None) -> None:
    built = kernels[piece]
    args = {"t": normal(10, 8), "row": row, "rows": rows, "out": zeros(4, 8)}
    assert run_kernel(built.kernel, {**args, "out": zeros(4, 8)}) == guard
    check(built, args)


def test_guards_are_numbered_across_loops(kernels: Kernels) -> None:
    built = kernels[pieces]
    assert built.code.n_guards == 4
    for n, b_rows, out_rows in ((2, 3, 102), (3, 3, 102), (2, 3, 3), (1, 2, 101), (0, 1, 102)):
        check(built, {"a": normal(2, 4), "b": normal(b_rows, 4), "n": n, "out": zeros(out_rows, 4)})
    check(built, {"a": normal(1, 4), "b": normal(3, 4), "n": 1, "out": zeros(102, 4)})


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("rows", "cols"), TURNED)
@pytest.mark.parametrize("dtype", [F32, I8, DType.F64])
def test_transposed_loads(kernels: Kernels, rows: int, cols: int, dtype: DType) -> None:
    t = np.arange((cols + 1) * (rows + 2)).reshape(cols + 1, rows + 2).astype(dtype.np)
    for unit in (True, False):
        check(kernels[turn, rows, cols, dtype, unit], {"t": t, "out": np.zeros((rows, cols), dtype.np)})


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("m", "n", "inner"), MULTIPLIED)
@pytest.mark.parametrize("dtype", [F32, DType.F64, I8, I32, DType.I64])
def test_products_of_any_size(kernels: Kernels, m: int, n: int, inner: int, dtype: DType) -> None:
    result = RESULT.get(dtype, dtype)
    rng = np.random.default_rng(1)
    low = -128 if dtype is I8 else -9
    a, b, c = (rng.integers(low, 10, shape).astype(kind.np) for shape, kind in (((m, inner), dtype), ((inner, n), dtype), ((m, n), result)))
    args = {"a": a, "b": b, "c": c, "out": np.zeros((m, n), result.np), "more": np.zeros((m, n), result.np)}
    check(kernels[product, m, n, inner, dtype], args)   # whole numbers below 2^24: sums are exact in any order


def test_wide_rows_are_packed_for_products(kernels: Kernels) -> None:
    check(kernels[wide_product], {"a": np.ones((64, 32), np.float32), "t": np.rint(normal(32, 2048) * 9), "out": zeros(64, 64)})


def test_column_reductions_and_broadcasts(kernels: Kernels) -> None:
    check(kernels[standard], {"x": normal(24, 50), "w": normal(1, 50), "out": zeros(24, 50), "top": zeros(1, 50)}, **CLOSE)


def test_narrow_integers_wrap_after_every_operation(kernels: Kernels) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 256, (4, 70)).astype(np.uint8), rng.integers(-128, 128, (4, 70)).astype(np.int8)
    check(kernels[wrap], {"x": x, "y": y, "a": np.zeros_like(x), "b": np.zeros((4, 1), np.int8), "c": np.zeros((4, 70), np.bool_)})


def test_masks_in_memory_and_causal_triangle(kernels: Kernels) -> None:
    keep = np.random.default_rng(3).random((20, 20)) < 0.7
    check(kernels[causal], {"s": normal(20, 20), "keep": keep, "at": 2, "out": zeros(20, 20), "mask": np.zeros((20, 20), np.bool_)})


@pytest.mark.slow
def test_portable_flags_give_the_same_exact_results(build_all: BuildAll) -> None:
    built = build_all({softmax: Job(trace(softmax)), attention: Job(trace(attention, kv=F32))}, portable=True)
    check(built[softmax], {"x": normal(8, 200), "out": zeros(8, 200)}, **CLOSE)
    args = {"q": normal(32, 16), "kv": normal(96, 24), "n": 4, "scale": 0.25, "out": zeros(32, 16)}
    check(built[attention], args, rtol=1e-5, atol=1e-5)


def test_user_names_cannot_collide_with_generated_ones(kernels: Kernels) -> None:
    check(kernels[collide], {"row": normal(4, 8), "col": 1.5, "args": normal(4, 8), "context": normal(4, 8),
                                  "scratch": zeros(4, 8)})


@pytest.mark.slow
def test_text_is_the_same_in_every_process() -> None:
    program = ("import sys; sys.path.insert(0, {root!r})\n"
               "from pto_wsp.c.kernel import emit_kernel\n"
               "from pto_wsp.ir import kernel as k\n"
               "from pto_wsp.passes.kernel.passes import run_kernel_passes\n"
               "from pto_wsp.ir.dtype import DType\n"
               "from pto_wsp.ir.tile import TileType\n"
               "from pto_wsp.ir.scalar import Const\n"
               "t = TileType(4, 8, DType.F32)\n"
               "v = [k.Value(n, t) for n in range(4)]\n"
               "z = Const(0)\n"
               "kern = k.Kernel('f', (k.TileParam('x', k.Role.IN, t), k.TileParam('y', k.Role.OUT, t)), (\n"
               "    k.Load(v[0], 'x', z, z), k.Compute(v[1], 'exp', (v[0],)), k.Compute(v[2], 'add', (v[1], v[0])),\n"
               "    k.Store('y', v[2], z, z)))\n"
               "print(emit_kernel(run_kernel_passes(kern), 'f', {{'x': True, 'y': True}}).text)\n")
    root = str(Path(__file__).resolve().parents[3])
    texts = {subprocess.run([sys.executable, "-c", program.format(root=root)], env={"PYTHONHASHSEED": seed},
                                      capture_output=True, text=True, check=True).stdout for seed in ("1", "2")}
    assert len(texts) == 1


def test_what_the_user_names_like_a_sum_is_another_thing(kernels: Kernels) -> None:
    check(kernels[named_like_sums], {"x": normal(4, 8), "w": normal(4, 64), "y": zeros(4, 8), "z": zeros(4, 64)}, **CLOSE)
