"""Tasks that accumulate, as packages: parts have no order on the device, and the tasks that combine them follow one another."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pto_wsp import Acc, Deps, In, P, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.ir.dtype import DType
from tests.npu.dynamic.cases import F32, add, run_package, tensors
from tests.npu.graph import Graph
from tests.npu.harness import A5_FAST
from tests.npu.package import Direction

TILE = Tile[8, 16, F32]


@kernel
def scaled(x: In[TILE], n: Scalar[DType.I32], y: Acc[TILE], top: Acc[TILE, max]) -> None:
    """Add a tile where n is even, and keep the largest of one row."""
    with pto.when(n % 2 == 0):
        pto.store(y, x * 2)
    pto.store(top, x[0:1], (1, 0))


@kernel
def product(a: In[Tile[16, 16, F32]], b: In[Tile[16, 16, F32]], c: Acc[Tile[16, 16, F32]]) -> None:
    """One step of a product that is split along its sum."""
    pto.store(c, a @ b)


def chains(graph: Graph) -> set[int]:
    """Return how many tasks update each view, and check that those of one view follow one another."""
    updates: dict[tuple[int, int], list[int]] = {}
    for number, task in enumerate(graph.tasks):
        for argument in task.arguments:
            if argument.direction is Direction.INOUT:
                updates.setdefault((argument.buffer, argument.offset), []).append(number)
    for numbers in updates.values():
        assert all(graph.ancestors[later] >> earlier & 1 for earlier, later in combinations(numbers, 2))
    return {len(numbers) for numbers in updates.values()}


def split() -> Workload:
    """A product of 64 terms in four parts, and a task that reads it."""
    (A,), (B,), (C,), (D,) = tensors("A", 16, 64), tensors("B", 64, 16), tensors("C", 16, 16), tensors("D", 16, 16)

    @workload
    def case() -> None:
        for k in P(4):
            product[k](A[:, 16 * k:16 * (k + 1)], B[16 * k:16 * (k + 1)], C)
        product(C, B[:16], D)
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_a_split_product_is_summed_in_program_order(family: str) -> None:
    graph, _ = run_package(split(), family)
    assert chains(graph) == {4, 1}
    products = [number for number, task in enumerate(graph.tasks) if task.kernels == (0,)]
    assert len(products) == 5
    assert not any(graph.ancestors[later] >> earlier & 1 for earlier, later in combinations(products[:4], 2))
    assert all(graph.ancestors[products[4]] >> earlier & 1 for earlier in products[:4])


@pytest.mark.slow
@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap()], ids=["hybrid", "overlap"])
def test_sums_of_loops_whose_lengths_are_data(deps: Deps) -> None:
    X, Y, M = tensors("XYM", 4, 8, 16)
    lens = Tensor(np.array([3, 0, 2, 1]), name="LENS")

    @workload
    def case() -> None:
        for b in P(4):
            for k in P(lens[b]):
                scaled[b, k](X[k], b + k, Y[b % 2], M[b])
        add(Y[0], Y[1])
    graph, _ = run_package(case().task_graph(deps=deps))
    assert chains(graph) == {5, 1 + 1, 3, 2, 1}     # Y[0], and Y[1], which `add` updates in the end; M[0], M[2], M[3]
