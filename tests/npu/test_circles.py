"""Chains of tasks from loops in which products and vector work need each other in turn, on both families."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload
from tests.npu.harness import check_package

F16, F32, I32 = DType.F16, DType.F32, DType.I32
S = 16
TILE = Tile[S, S, F32]


@kernel
def orthogonal(x: In[TILE], y: Out[TILE]) -> None:
    t = pto.alloc((S, S), F32)
    t[:] = x * pto.rsqrt(pto.colsum(pto.rowsum(x * x)))
    for _ in pto.range(2):
        a = t @ t.T
        t[:] = t * 3.4445 + (a * -4.7750 + a @ a * 2.0315) @ t
    pto.store(y, t)


@kernel
def cell(x: In[Tensor], u: In[Tile[S, S, F16]], w: In[Tile[S, S, F16]], n: Scalar[I32], y: Out[Tensor]) -> None:
    h = pto.alloc((S, S), F32, init=0)
    for t in pto.range(2):
        h[:] = pto.tanh(pto.load(x, (t * S, 0), shape=(S, S)) @ u + pto.cast(h, F16) @ w)
        with pto.when(n > t):
            acc = pto.alloc((S, S), F32, init=1)
            for _ in pto.range(n):
                acc += pto.cast(h, F16) @ w
            h[:] = pto.sigmoid(acc)
        pto.store(y, h, (t * S, 0))


def package() -> Any:
    T = {name: Tensor(np.zeros(shape, dtype), name=name) for name, shape, dtype in (
        ("W", (S, S), np.float32), ("O", (S, S), np.float32), ("X", (2 * S, S), np.float16), ("U", (S, S), np.float16),
        ("V", (S, S), np.float16), ("Y", (2, 2 * S, S), np.float32))}

    @workload
    def circles() -> None:
        orthogonal[0](x=T["W"], y=T["O"])
        for i in P(2):
            cell[i](x=T["X"], u=T["U"], w=T["V"], n=i, y=T["Y"][i])

    return circles()


@pytest.mark.slow
@pytest.mark.parametrize(("family", "arch", "runtime"), [("a2a3", "ascend_910b", "tensormap_and_ringbuffer"),
                                                         ("a5", "ascend_950", "host_build_graph")])
def test_chains_give_what_golden_says(family: str, arch: str, runtime: str) -> None:
    program = package().compile(target="ascend_npu", arch=arch, options={"runtime": runtime})
    assert program.artifact_dir is not None
    graph = check_package(program.artifact_dir, family).graph
    assert len(graph.tasks) == 11 + 2 * 9
