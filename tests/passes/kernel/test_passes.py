"""What each pass does to a small kernel: goldens before and after, and the numbers stay."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, Scalar, Tensor, Tile, pto
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, run_kernel_passes
from pto_wsp.run.kernel_interpreter import run_kernel
from pto_wsp.trace.kernel.annotations import TensorAnnotation
from pto_wsp.trace.kernel.definition import KernelDef
from tests.conftest import Golden

F32, I32 = DType.F32, DType.I32
PASSES = {step.name: step for step in KERNEL_PASSES}


def trace(function: Callable[..., Any]) -> k.Kernel:
    """Return the kernel IR of a Python function, with Tensor parameters of f32."""
    found = KernelDef.from_function(function, sys._getframe(1).f_locals)
    return found.trace({}, {p.name: F32 for p in found.params if isinstance(p.annotation, TensorAnnotation)})


def context(kernel: k.Kernel) -> KernelContext:
    """Return a context in which all columns are neighbours, and outputs are larger than the caches and may have fewer rows."""
    outputs = frozenset(p.name for p in kernel.memory_params if not p.role.reads)
    return KernelContext(frozenset(p.name for p in kernel.memory_params), outputs, outputs)


def upto(name: str, kernel: k.Kernel) -> k.Kernel:
    """Return the kernel as the pass of that name finds it."""
    return run_kernel_passes(kernel, passes=KERNEL_PASSES[:list(PASSES).index(name)])


def show(name: str, kernel: k.Kernel) -> str:
    """Return the kernel before and after one pass, as its dumps show it."""
    before = upto(name, kernel)
    after = PASSES[name].run(before, context(kernel))
    PASSES[name].verify_after(after)
    return f"before {name}:\n{print_kernel(before)}\n\nafter {name}:\n{print_kernel(after)}\n"


def pieces(x: In[Tensor], row: Scalar[I32], n: Scalar[I32], y: Out[Tensor]) -> None:
    pto.load(x, (100, 0), shape=(2, 4))                    # nothing uses it, and it may end the run
    for i in pto.range(n):
        pto.store(y, pto.load(x, (row + i, 0), shape=(2, 4)) * 2, (i, 0))


def nothing_done(x: In[Tile[2, 4, F32]], i: In[Tile[2, 4, I32]], y: Out[Tile[2, 4, F32]], j: Out[Tile[2, 4, I32]]) -> None:
    pto.store(y, pto.where(x > 0, pto.neg(-(pto.cast(x, F32) * 1 - 0.0)), x.T.T) + 0.0)
    pto.store(j, pto.maximum(i + 0, i) * 0 + pto.abs(pto.abs(i)) // 1)
    pto.store(y, x * (pto.constant(2.0) + 3.0))


def twice(x: In[Tensor], z: InOut[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    total = pto.alloc((2, 4), F32, init=0)
    total += pto.exp(pto.load(x, (0, 0), shape=(2, 4)))
    for _ in pto.range(3):
        total += pto.exp(pto.load(x, (0, 0), shape=(2, 4))) + z
    pto.store(z, total)                                    # x may be the same memory
    pto.store(y, pto.exp(pto.load(x, (0, 0), shape=(2, 4))) + (total + 1) + (total + 1))


def product(a: In[Tile[4, 8, F32]], b: In[Tile[8, 4, F32]], u: In[Tile[4, 4, F32]], y: Out[Tile[4, 4, F32]]) -> None:
    pto.store(y, u + a @ b)


def read_back(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    held = pto.alloc((2, 4), F32, init=1)
    held[:] = x * 2
    held[:] = held + 1
    for _ in pto.range(2):
        held[:] = held * held
    pto.store(y, held)


def gemm(a: In[Tensor], b: In[Tensor], y: Out[Tile[4, 16, F32]]) -> None:
    acc = pto.alloc((4, 16), F32, init=0)
    for i in pto.range(4):
        acc += pto.load(a, (0, i * 8), shape=(4, 8)) @ pto.load(b, (i * 8, 0), shape=(8, 16))
    pto.store(y, acc)


def turned(a: In[Tensor], b: In[Tensor], q: In[Tile[4, 8, F32]], y: Out[Tile[4, 16, F32]], z: Out[Tile[16, 8, F32]],
           few: Out[Tile[4, 1, F32]], row: Out[Tile[1, 16, F32]], s: In[Tile[20, 8, F32]], short: Out[Tile[20, 16, F32]]) -> None:
    acc = pto.alloc((4, 16), F32, init=0)
    rows = pto.load(b, (16, 0), shape=(16, 8))
    outside = rows.T
    for i in pto.range(2):
        acc += pto.load(a, (i, 0), shape=(8, 4), transpose=True).T.T @ pto.load(b, (i, 0), shape=(16, 8), transpose=True)
        acc += (q + i) @ outside
    pto.store(y, acc)
    pto.store(z, rows @ (q.T @ q) + pto.load(b, (0, 0), shape=(8, 16), transpose=True))
    pto.store(few, pto.load(a, (0, 0), shape=(8, 4), transpose=True) @ pto.load(b, (0, 0), shape=(8, 1)))
    pto.store(row, pto.load(q, (1, 0), shape=(1, 8)) @ pto.load(b, (0, 0), shape=(8, 16)))
    pto.store(short, s @ pto.load(b, (0, 0), shape=(8, 16)))


def dead(x: In[Tensor], y: Out[Tile[2, 4, F32]]) -> None:
    kept = pto.alloc((2, 4), F32, init=7)
    unread = pto.alloc((2, 4), F32, init=0)
    never = pto.alloc((2, 4), F32, init=3)
    value = pto.load(x, (0, 0), shape=(2, 4))
    pto.load(x, (4, 0), shape=(2, 4)) * 2
    kept[:] = value * 3
    kept[:] = value * 4
    for _ in pto.range(3):
        unread[:] = value + 1
    pto.store(y, kept)
    never[:] = value


def softmax(x: In[Tile[16, 100, F32]], y: Out[Tile[16, 100, F32]], total: Out[Tile[16, 1, F32]]) -> None:
    weight = pto.exp(x - pto.rowmax(x))
    pto.store(total, pto.rowsum(weight))
    pto.store(y, weight / pto.rowsum(weight))


def normed(x: InOut[Tile[4, 8, F32]], w: In[Tile[8, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    scaled = x * pto.rsqrt(pto.rowmean(x * x) + 1e-6)
    pto.store(x, x + 1)
    pto.store(y, scaled @ w + pto.colsum(x))


def wide(x: In[Tile[2, 300, F32]], i: In[Tile[2, 300, I32]], y: Out[Tile[2, 300, F32]], j: Out[Tile[2, 300, I32]],
         few: Out[Tile[2, 8, F32]], total: Out[Tile[2, 1, F32]]) -> None:
    pto.store(y, x * 2)
    pto.store(total, pto.rowsum(x))                        # lanes have blocks of their own
    pto.store(j, i + 1)
    pto.store(few, pto.iota((2, 8), F32, axis=1))          # too short to be worth it


def kept(a: In[Tile[20, 8, F32]], b: In[Tile[8, 16, F32]], s: In[Tile[12, 8, F32]], y: Out[Tile[20, 16, F32]],
         top: Out[Tile[12, 16, F32]], z: Out[Tile[24, 16, F32]], more: In[Tile[20, 8, F32]], total: Out[Tile[1, 16, F32]]) -> None:
    pto.store(y, pto.exp(a @ b) * 2)
    rows = s @ b
    for _ in pto.range(2):
        pto.store(top, rows + 1)
    pto.store(total, pto.colsum(rows))                     # takes all rows of the product
    pto.store(z, more @ b, (4, 0))                         # does not start at the first row


def turns(q: In[Tile[8, 8, F32]], x: In[Tensor], n: Scalar[I32], y: InOut[Tile[8, 8, F32]]) -> None:
    acc = pto.alloc((8, 8), F32, init=0)
    bias = pto.alloc((8, 1), F32, init=2)
    for i in pto.range(n):
        scaled = pto.exp(q * 0.5).T
        for j in pto.range(2):
            acc += pto.maximum(scaled, pto.exp(bias)) + pto.load(x, (i * 8, 0), shape=(8, 8)) / (q + j)
        pto.store(y, pto.exp(y))                           # what is stored is not the same in the next turn
    bias[:] = 1
    pto.store(y, acc)


def rotated(x: In[Tile[4, 8, F32]], state: InOut[Tile[4, 8, F32]], n: Scalar[I32], y: Out[Tile[4, 4, F32]],
            z: Out[Tile[2, 2, F32]]) -> None:
    low, high = x[:, :4], x[:, 4:]
    short = pto.load(state, (0, 0), shape=(4, 8), valid=(n, None), fill=5)
    pto.store(state, x + short)
    pto.store(y, low - high + short[:, 2:6])
    for _ in pto.range(n):
        pto.store(z, high[2:, 1:3] + x[1:3, 3:7:2] + short[:, 6:][2:, :])    # a step stays a copy


def branches(x: In[Tensor], row: Scalar[I32], n: Scalar[I32], z: InOut[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    held = pto.alloc((2, 4), F32, init=1)
    value = pto.load(x, (row, 0), shape=(2, 4))
    for i in pto.range(n):
        with pto.when(i < row):
            held[:] = pto.exp(value) + held
            pto.store(z, pto.load(x, (row, 0), shape=(2, 4)) * 2)
        with pto.otherwise():
            held[:] = pto.exp(value) - pto.load(x, (row, 0), shape=(2, 4))
        with pto.when(i > 1):
            held[:] = held * pto.exp(value) + z
    with pto.when(n > 2):
        held += 1
    pto.store(y, held + pto.exp(value))


EXAMPLES = {"number_guards": pieces, "forward_buffers": read_back, "simplify": nothing_done, "merge_common": twice,
            "narrow_loads": rotated, "hoist_invariants": turns,
            "fuse_products": product, "accumulate_in_place": gemm, "drop_dead_code": dead, "choose_products": turned, "fuse_rows": normed,
            "schedule_rows": softmax, "form_columns": softmax, "vectorise": softmax, "trim_rows": kept,
            "stream_stores": wide, "plan_arena": normed}


@pytest.mark.parametrize("name", list(PASSES))
def test_before_and_after(name: str, golden: Golden) -> None:
    golden(show(name, trace(EXAMPLES[name])))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(PASSES))
@pytest.mark.parametrize("function", [branches, *EXAMPLES.values()], ids=lambda f: f.__name__)
def test_numbers_stay(name: str, function: Callable[..., None]) -> None:
    kernel = trace(function)
    before = upto(name, kernel)
    after = PASSES[name].run(before, context(kernel))
    PASSES[name].verify_after(after)
    rng = np.random.default_rng(3)
    args: dict[str, object] = {}
    for param in kernel.params:
        match param:
            case k.TileParam():
                args[param.name] = rng.integers(-3, 4, param.type.shape).astype(param.type.dtype.np)
            case k.TensorParam():
                args[param.name] = rng.integers(-3, 4, (120, 40)).astype(param.dtype.np)
            case k.ScalarParamDecl():
                args[param.name] = 3
    mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}
    theirs = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}
    assert run_kernel(before, mine) == run_kernel(after, theirs) is None   # type: ignore[arg-type]
    for name, value in mine.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)   # type: ignore[arg-type]


def test_a_guard_keeps_its_number_when_loads_before_it_merge_or_go() -> None:
    def three(x: In[Tensor], row: Scalar[I32], y: Out[Tensor]) -> None:
        pto.load(x, (0, 0), shape=(2, 4))
        value = pto.load(x, (0, 0), shape=(2, 4))
        pto.store(y, value + pto.load(x, (row, 0), shape=(2, 4)), (row, 0))

    kernel = trace(three)
    lowered = run_kernel_passes(kernel)
    assert [s.guard for s in walk(lowered.body) if isinstance(s, k.Load | k.Store)] == [0, 2, 3]
    for rows_x, rows_y, failed in ((1, 9, 0), (2, 9, 2), (9, 2, 3), (9, 9, None)):
        for made in (kernel, lowered):
            args = {"x": np.ones((rows_x, 4), np.float32), "row": 3, "y": np.zeros((rows_y, 4), np.float32)}
            assert run_kernel(made, args) == failed   # type: ignore[arg-type]


def scored(q: In[Tile[8, 8, F32]], keys: In[Tile[16, 8, F32]], weights: In[Tile[1, 8, F32]], y: Out[Tile[1, 16, F32]],
           z: Out[Tile[16, 8, F32]]) -> None:
    held = pto.alloc((1, 8), F32, init=1)
    score = pto.relu(q @ keys.T)
    pto.store(y, pto.colsum(score * pto.reshape(weights, (8, 1))))
    held[:] = weights * 3
    pto.store(z, (score * pto.reshape(held, (8, 1))).T)


def test_a_reshape_between_loops_over_rows_does_not_part_them() -> None:
    kernel = trace(scored)
    fused = upto("schedule_rows", kernel)
    loops = [[stmt.op for stmt in rows.body if isinstance(stmt, k.Compute)] for rows in fused.body if isinstance(rows, k.Rows)]
    assert ["relu", "mul", "colsum"] in loops
    rng = np.random.default_rng(5)
    given = {name: rng.integers(-3, 4, shape).astype(np.float32) for name, shape in (("q", (8, 8)), ("keys", (16, 8)), ("weights", (1, 8)))}
    score, column = np.maximum(given["q"] @ given["keys"].T, 0), given["weights"].T
    for made in (kernel, fused):
        args = {**given, "y": np.zeros((1, 16), np.float32), "z": np.zeros((16, 8), np.float32)}
        assert run_kernel(made, args) is None   # type: ignore[arg-type]
        np.testing.assert_array_equal(args["y"], (score * column).sum(axis=0, keepdims=True))
        np.testing.assert_array_equal(args["z"], (score * column * 3).T)
