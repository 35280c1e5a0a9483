"""Pipelines on the device: processes take turns on the control processor, tasks are told to wait for what tokens wait for."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Channel, P, Tensor, Workload, consume, send, workload
from tests.npu.dynamic.cases import add, grow, mix, move, run_package, tensors
from tests.npu.harness import A2A3_FAST


def two(depth: int) -> Workload:
    """A loop that makes tiles, and one that takes them."""
    X, Y, Z = tensors("XYZ", 6, 8, 16)
    tokens = Channel("tokens", depth)

    @workload
    def load() -> None:
        for b in P.seq(6):
            send(tokens, move[b](X[b], Y[b]))

    @workload
    def use() -> None:
        with consume(tokens) as b:
            add[b](Y[b], Z[b])

    @workload
    def case() -> None:
        grow(X[0])
        with P.pipe():
            load()
            use()
        grow(Z[5])
    return case()


@pytest.mark.parametrize("family", A2A3_FAST)
@pytest.mark.parametrize("depth", [0, 1, 2, 9])
def test_one_loop_gives_and_another_takes(depth: int, family: str) -> None:
    graph, _ = run_package(two(depth), family)
    assert len([task for task in graph.tasks if task.arguments]) == 14
