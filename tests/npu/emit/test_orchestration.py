"""Orchestrations in C++ as goldens: one tile a task, a kernel of two cores, lengths from data with edges that must be told."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp import DenseDyn, DType, In, InOut, Out, P, Ragged, Scalar, Symbol, Tensor, Tile, kernel, pto, workload
from pto_wsp.npu.emit.orchestration import emit_orchestration, orchestration_path
from tests.conftest import Golden
from tests.npu.submits import npu_plan

F32, I64 = DType.F32, DType.I64


def test_one_tile_a_task(golden: Golden) -> None:
    @kernel
    def rmsnorm_tile(x: In[Tile[16, 128, F32]], gamma: In[Tile[1, 128, F32]], eps: Scalar[F32], out: Out[Tile[16, 128, F32]]) -> None:
        pto.store(out, x * pto.rsqrt(pto.rowmean(x * x) + pto.full((1, 1), eps, F32)) * gamma)

    X, gamma, out = Tensor(np.ones((2, 16, 128), np.float32)), Tensor(np.ones(128, np.float32)), Tensor(np.ones((2, 16, 128), np.float32))

    @workload
    def rmsnorm() -> None:
        for i in P(2):
            rmsnorm_tile[i](X[i], gamma, 1e-6, out[i])

    plan = npu_plan(rmsnorm())
    assert orchestration_path(plan) == "orchestration/rmsnorm.cpp"
    golden(emit_orchestration(plan), suffix=".cpp")


def test_a_kernel_of_two_cores(golden: Golden) -> None:
    @kernel
    def matmul_add(a: In[Tile[32, 256, F32]], b: In[Tile[256, 64, F32]], bias: In[Tile[32, 64, F32]], out: Out[Tile[32, 64, F32]]) -> None:
        pto.store(out, pto.matmul(a, b) + bias)

    a, b = Tensor(np.ones((32, 256), np.float32)), Tensor(np.ones((256, 64), np.float32))
    bias, out = Tensor(np.ones((32, 64), np.float32)), Tensor(np.ones((32, 64), np.float32))

    @workload
    def linear() -> None:
        matmul_add(a, b, bias, out)

    golden(emit_orchestration(npu_plan(linear())), suffix=".cpp")


def test_lengths_from_data_and_edges_that_are_told(golden: Golden) -> None:
    @kernel
    def decay(x: InOut[Tile[16, 64, F32]], f: Scalar[F32], n: Scalar[I64]) -> None:
        pto.store(x, x * f + pto.full((1, 1), n, F32))

    @kernel
    def read(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
        pto.store(y, x * 2)

    cache, seen = Tensor(np.ones((8, 256, 64), np.float32)), Tensor(np.ones((8, 16, 64), np.float32))
    lens = Tensor(np.full(8, 100, np.int32))
    rows, factor = DenseDyn(8), Symbol("factor")
    blocks = Ragged(rows, lens)

    @workload
    def decode() -> None:
        for b in P(rows):
            for t in P.seq(blocks[b]):
                done = read[b, t](cache[b, t * 16:].clip(16, 64), seen[b])
            decay[b](cache[b, 0:16], factor, lens[b], after=[done])
            decay[b](cache[b, 16:32], 0.5, 3)

    golden(emit_orchestration(npu_plan(decode())), suffix=".cpp")


def test_intermediates_of_the_workload_are_made_where_they_are_used(golden: Golden) -> None:
    """No arguments, no checks of theirs; written anew behind those who have read them, each in a scope of its own."""
    @kernel
    def move(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
        pto.store(y, x * 2)

    x, y = Tensor(np.ones((4, 16, 64), np.float32)), Tensor(np.ones((4, 16, 64), np.float32))
    one, other = Tensor.empty((4, 16, 64), F32), Tensor.empty((2, 32, 64), DType.F32)

    @workload
    def stages() -> None:
        for i in P(4):
            move[i](x[i], one[i])
        for i in P(4):
            move[i](one[3 - i], one[i])
        move(one[0], other[1, :16])
        move(other[1, :16], y[1])
        move(y[1], y[0])
        third = Tensor.empty((1, 16, 64), F32)
        move(y[0], third[0])
        move(third[0], y[2])

    golden(emit_orchestration(npu_plan(stages())), suffix=".cpp")


def test_the_text_is_the_same_whatever_was_made_before() -> None:
    def text() -> str:
        X, Y = (Tensor(np.ones((4, 16, 64), np.float32), name=name) for name in "XY")

        @kernel
        def move(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
            pto.store(y, x * 2)

        @workload
        def case() -> Any:
            for b in P(4):
                move[b](X[b], Y[b], after=[move[b](Y[b], X[b])])
        return emit_orchestration(npu_plan(case()))
    assert text() == text()
