"""Whole packages whose edges must be told: run in several orders, they give what golden.py says; without an edge they do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DenseDyn, DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.npu.harness import check_package

F32 = DType.F32


@kernel
def move(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    """Double a tile."""
    pto.store(y, x * 2)


@kernel
def mix(a: In[Tile[16, 64, F32]], b: In[Tile[64, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    """A product on one core, a sum on another."""
    pto.store(y, pto.matmul(a, b) + 1)


def case() -> Workload:
    """Loops of more tasks than one can wait for, kernels of two parts, lengths from data, writes over what was read."""
    rng = np.random.default_rng(0)
    X, Y, Z = (Tensor(rng.standard_normal((24, 16, 64)).astype(np.float32), name=name) for name in "XYZ")
    W = Tensor(rng.standard_normal((64, 64)).astype(np.float32) / 8, name="W")
    lens = Tensor(np.array([1, 3, 0, 2], np.int32), name="lens")
    rows = DenseDyn(4)

    @workload
    def orders() -> None:
        for b in P(20):
            move[b](X[b], Y[b])
        for b in P(20):
            mix[b](Y[19 - b], W, Z[b])
        for b in P(rows):
            for t in P.seq(lens[b]):
                made = mix[b, t](Z[b * 4 + t], W, X[b * 4 + t])
            move[b](X[20 + b], Y[b], after=made)
    return orders()


@pytest.fixture(scope="module")
def package() -> Path:
    """Return the package of the case."""
    root = case().compile(target="ascend_npu").artifact_dir
    assert root is not None
    return root


@pytest.mark.slow
def test_every_order_that_the_edges_allow_gives_the_golden_numbers(package: Path) -> None:
    """20 moves, then 20 times two parts, then 6 times two parts and 4 moves; other tasks do nothing but join them."""
    graph = check_package(package, "a2a3").graph
    joins = [task for task in graph.tasks if not task.arguments]
    assert len(graph.tasks) - len(joins) == 20 + 40 + 12 + 4
    assert joins


@pytest.mark.slow
def test_without_its_edges_some_order_gives_other_numbers(package: Path, tmp_path: Path) -> None:
    root = tmp_path / "package"
    shutil.copytree(package, root)
    source = root / "orchestration" / "orders.cpp"
    source.chmod(0o644)
    text = source.read_text()
    assert text.count("readers_X.find(") == 1
    lost = "\n".join(line for line in text.splitlines() if "wait_for(" not in line)
    source.write_text(lost + "\n")
    with pytest.raises(AssertionError, match=r"output `|nothing orders them"):
        check_package(root, "a2a3")


@pytest.mark.slow
def test_the_other_runtime_reads_lengths_that_are_given() -> None:
    root = case().compile(target="ascend_npu", options={"runtime": "host_build_graph"}).artifact_dir
    assert isinstance(root, Path)
    assert len(check_package(root, "a5").graph.edges("named")) > 20
    assert "reads elements of `lens` before any task runs" in (root / "README.md").read_text()
