"""Whole plans with their cube kernels as tile programs: what is not valid, and what no task has written, never reaches a result."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, P, Scalar, Tensor, Tile, Workload, ceildiv, kernel, minimum, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir import scalar as s
from pto_wsp.npu.plan.model import NpuKernel, NpuPlan
from pto_wsp.npu.select.select import select
from pto_wsp.ops.entry import Unit
from tests.npu.select.cube_run import run_cube
from tests.npu.split.numpy_plan import interpret, npu_plan, run_npu_plan

F32, I32 = DType.F32, DType.I32
Array = np.ndarray


def run(use: NpuKernel, args: Mapping[str, Array | s.Number]) -> None:
    """Run a kernel of the cube core as its tile program, one of the vector core by the interpreter."""
    if use.core is Unit.CUBE:
        run_cube(select(use, builtin_arch("ascend_910b")), args)
    else:
        interpret(use, args)


def check(made: Workload, out: Array, expected: Array, **arrays: Array) -> NpuPlan:
    """Run a workload that writes `out` and compare."""
    plan = npu_plan(made)
    run_npu_plan(plan, {"out": out, **arrays}, run)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    return plan


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def product_kernel(rows: int, cols: int, depth: int) -> Kernel:
    """Return a block of a product, its inner dimension in a loop."""

    @kernel
    def product(a: In[Tensor], b: In[Tensor], out: Out[Tile[rows, cols, F32]]) -> None:
        total = pto.alloc((rows, cols), F32, init=0)
        for k in pto.range(0, a.shape[1], depth):
            length = minimum(depth, a.shape[1] - k)
            left = pto.load(a, (0, k), shape=(rows, depth), valid=(a.shape[0], length))
            right = pto.load(b, (k, 0), shape=(depth, cols), valid=(length, b.shape[1]))
            total[:] = pto.matmul(left, right, total)
        pto.store(out, total)

    return product


def test_a_tiled_product_is_stored_straight_from_its_accumulator() -> None:
    a, b = random(100, 300), random(300, 70, seed=1)
    A, B, C = Tensor(a, name="a"), Tensor(b, name="b"), Tensor(np.zeros((100, 70), np.float32), name="out")
    product = product_kernel(32, 48, 64)

    @workload
    def multiply() -> None:
        for i, j in P(ceildiv(100, 32), ceildiv(70, 48)):
            product[i, j](a=A[i * 32:].clip(32, 300), b=B[:, j * 48:].clip(300, 48), out=C[i * 32:, j * 48:].clip(32, 48))

    plan = check(multiply(), np.full((100, 70), np.nan, np.float32), a @ b, a=a, b=b)
    assert [use.core for use in plan.kernels] == [Unit.CUBE]


def test_parts_of_a_sum_that_a_task_leaves_out_are_zeros_that_the_vector_core_makes() -> None:
    """Each task multiplies a part of the inner dimension, the last of which is empty, into a whole block."""
    a, b = random(20, 90), random(90, 30, seed=1)
    out = np.full((4 * 32, 48), np.nan, np.float32)
    A, B, C = Tensor(a, name="a"), Tensor(b, name="b"), Tensor(out.copy(), name="out")
    product = product_kernel(32, 48, 16)

    @workload
    def multiply() -> None:
        for part in P(4):
            product[part](a=A[:, part * 30:].clip(32, 30), b=B[part * 30:].clip(30, 48), out=C[part * 32:(part + 1) * 32])

    expected = np.zeros((4, 32, 48), np.float32)
    for part in range(3):
        expected[part, :20, :30] = a[:, part * 30:part * 30 + 30] @ b[part * 30:part * 30 + 30]
    plan = check(multiply(), out, expected.reshape(128, 48), a=a, b=b)
    assert [use.core for use in plan.kernels] == [Unit.CUBE, Unit.VECTOR]


@kernel
def attend(q: In[Tile[16, 32, F32]], k: In[Tensor], v: In[Tile[64, 32, F32]], out: Out[Tile[16, 32, F32]]) -> None:
    keys = pto.load(k, (0, 0), shape=(64, 32), valid=(k.shape[0], 32))
    columns = pto.iota((16, 64), I32, axis=1)
    scores = pto.where(columns < k.shape[0], (q * (1 / math.sqrt(32))) @ keys.T, -math.inf)
    weight = pto.exp(scores - pto.rowmax(scores))
    pto.store(out, weight @ v / pto.rowsum(weight))


@pytest.mark.parametrize("length", [1, 37, 64])
def test_ragged_attention(length: int) -> None:
    q, k, v = random(16, 32), random(length, 32, seed=1), random(length, 32, seed=2)
    Q, K, V, Y = (Tensor(array, name=name) for name, array in (("q", q), ("k", k), ("v", v), ("out", np.zeros((16, 32), np.float32))))

    @workload
    def one() -> None:
        attend[0](q=Q, k=K.clip(64, 32), v=V.clip(64, 32), out=Y)

    score = q.astype(np.float64) @ k.T / math.sqrt(32)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    check(one(), np.full((16, 32), np.nan, np.float32), weight @ v / weight.sum(axis=1, keepdims=True), q=q, k=k, v=v)


@kernel
def summed(a: In[Tensor], b: In[Tile[16, 24, F32]], out: Out[Tile[16, 24, F32]], n: Scalar[I32]) -> None:
    acc = pto.alloc((16, 24), F32, init=0)
    for j in pto.range(n):
        acc += pto.load(a, (j * 16, 0), shape=(16, 16)) @ b
    pto.store(out, acc + 1)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_sum_that_may_have_no_terms_crosses_as_none(n: int) -> None:
    a, b = random(48, 16), random(16, 24, seed=1)
    A, B, Y = Tensor(a, name="a"), Tensor(b, name="b"), Tensor(np.zeros((16, 24), np.float32), name="out")

    @workload
    def one() -> None:
        summed[0](a=A, b=B, out=Y, n=n)

    expected = sum((a[j * 16:(j + 1) * 16] @ b for j in range(n)), start=np.zeros((16, 24), np.float32)) + 1
    check(one(), np.full((16, 24), np.nan, np.float32), expected, a=a, b=b)
