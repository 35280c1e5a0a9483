"""Kernels of tiles of rank 3 as NPU packages: the emulation runs them, and golden.py gives what `interp` does."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.npu.dynamic.cases import run_package, whole_numbers

F32 = DType.F32


@kernel
def weighted(q: In[Tile[2, 16, 32, F32]], k: In[Tile[2, 16, 32, F32]], out: Out[Tile[2, 16, 16, F32]]) -> None:
    pto.store(out, q @ k.mT)


@kernel
def centred(x: In[Tile[3, 16, 32, F32]], scale: In[Tile[3, 1, 1, F32]], y: InOut[Tile[3, 16, 32, F32]]) -> None:
    y += np.maximum(x - x.max(axis=-1, keepdims=True), -4) * scale + x.sum(axis=0)


def products() -> Workload:
    q, k, out = (Tensor(whole_numbers(*shape), name=name) for name, shape in
                 (("q", (2, 2, 32, 32)), ("k", (2, 2, 16, 32)), ("out", (2, 2, 32, 16))))

    @workload
    def all_heads() -> None:
        for b in P(2):
            for i in P(2):
                weighted[b, i](q[b, :, i * 16:(i + 1) * 16], k[b], out[b, :, i * 16:(i + 1) * 16])

    return all_heads()


def vectors() -> Workload:
    x, scale, y = (Tensor(whole_numbers(*shape), name=name) for name, shape in
                   (("x", (3, 32, 32)), ("scale", (3, 1, 1)), ("y", (3, 32, 32))))

    @workload
    def bands() -> None:
        for i in P(2):
            centred[i](x[:, i * 16:(i + 1) * 16], scale, y[:, i * 16:(i + 1) * 16])

    return bands()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["a2a3", "a5"])
@pytest.mark.parametrize("make", [products, vectors])
def test_packages_of_tiles_of_rank_3_give_what_interp_gives(make, family: str) -> None:  # type: ignore[no-untyped-def]
    graph, _ = run_package(make(), family)
    assert len(graph.tasks) >= 2
