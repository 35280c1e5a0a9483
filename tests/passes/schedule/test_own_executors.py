"""Processes have executors of their own, and share those that an arch has when there are more processes."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Channel, DType, Out, P, Scalar, Tensor, Tile, builtin_arch, consume, kernel, pto, send, workload
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes

Y = Tensor(np.zeros((4, 1), np.int64), name="Y")


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


@workload
def three() -> None:
    first, second = Channel("first", depth=1), Channel("second", depth=1)
    with P.pipe():
        for i in P.seq(4):
            send(first, fill[i](i, Y[i]))
        with consume(first) as i:
            send(second, fill[i](i, Y[i]))
        with consume(second) as i:
            fill[i](i, Y[i])


@pytest.mark.parametrize("count, workers, n_workers", [(None, ["0", "1", "2"], 3), (4, ["0", "1", "2"], 3), (2, ["0", "1", "0"], 2),
                                                       (1, ["0", "0", "0"], 1)])
def test_each_process_has_an_executor_as_far_as_there_are_aicpus(count: int | None, workers: list[str], n_workers: int) -> None:
    w = three()
    plan = run_passes(lower(w.node), Context(w.schedule, builtin_arch("unit").with_aicpu(count=count)), PASSES)
    assert [print_scalar(task.worker) for task in submits(plan)] == workers and plan.rules.n_workers == n_workers
