"""Kernels of thousands of operations: what a pass makes of one grows with it, and no loop of the C does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.c.kernel import emit_kernel
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.passes.kernel.passes import run_kernel_passes
from pto_wsp.passes.kernel.rows import MAX_WEIGHT, weight_of

F32 = DType.F32
SHAPE = (2, 8)
Step = Callable[[Any, Any, int], Any]

STEPS: dict[str, Step] = {
    "operators": lambda v, x, i: v + x,
    "one value twice": lambda v, x, i: v + v * 0.0,
    "functions": lambda v, x, i: pto.exp(v * 0.0) + x,
    "rows": lambda v, x, i: v - pto.rowmax(v) + x,
    "whole tiles": lambda v, x, i: v.T.T + x,
}


def chain(n: int, step: Step) -> Kernel:
    def body(x: Any, y: Any) -> None:
        v = x + 0.0
        for i in range(n):
            v = step(v, x, i)
        pto.store(y, v)

    body.__annotations__ = {"x": In[Tile[(*SHAPE, F32)]], "y": Out[Tile[(*SHAPE, F32)]], "return": None}  # type: ignore[misc]
    return kernel(body)


def weights(ir: k.Kernel) -> list[int]:
    """Return the weight of each loop over rows."""
    return [sum(map(weight_of, (inner for inner in walk(rows.body) if not isinstance(inner, k.Columns))))
            for rows in walk(ir.body) if isinstance(rows, k.Rows)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", STEPS)
def test_no_loop_and_no_scratch_grows_with_the_kernel(name: str) -> None:
    n = 600
    deepest = sys.getrecursionlimit()
    lowered = run_kernel_passes(chain(n, STEPS[name]).specialise())
    text = emit_kernel(lowered, "long_one", {"x": True, "y": True}).text
    assert max(weights(lowered)) <= 1.1 * MAX_WEIGHT      # later passes repeat what is cheap
    assert lowered.arena_bytes <= MAX_WEIGHT * 64      # results live no longer than a loop or two
    assert n <= text.count("\n") <= 40 * n
    assert sys.getrecursionlimit() == deepest


def test_functions_weigh_more_than_operators() -> None:
    cheap, costly = (len(weights(run_kernel_passes(chain(200, STEPS[name]).specialise()))) for name in ("operators", "functions"))
    assert cheap == 1 and costly > 10


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("n", [700, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_chain_of_thousands_of_operations_compiles_and_computes(n: int, target: str) -> None:
    rng = np.random.default_rng(5)
    x, y = Tensor(rng.standard_normal((4, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))
    long = chain(n, STEPS["operators"])

    @workload
    def both() -> None:
        for i in P(2):
            long(x[2 * i:2 * i + 2], y[2 * i:2 * i + 2])

    both().compile(target=target).run()
    expected = x.data + np.float32(0)
    for _ in range(n):
        expected = expected + x.data
    np.testing.assert_array_equal(y.data, expected)
