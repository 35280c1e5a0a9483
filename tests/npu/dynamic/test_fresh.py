"""Tensors that a body makes for itself: the runtime allocates another one each time, and orders nothing through them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pto_wsp import Deps, P, Tensor, Workload, workload
from pto_wsp.npu.emit.orchestration import emit_orchestration
from tests.npu.dynamic.cases import F32, add, grow, mix, move, run_package, tensors
from tests.npu.harness import A5_FAST, check_package
from tests.npu.submits import npu_plan


def fresh() -> Workload:
    """One that its first task writes whole, one that tasks write in parts and read and write again, in a loop and in a branch."""
    X, Y, Z = tensors("XYZ", 6, 8, 16)
    A, B, C = tensors("ABC", 6, 16, 16)

    @workload
    def case() -> None:
        for b in P(6):
            tmp = Tensor.empty((8, 16), F32)
            move[b](X[b], tmp)
            both = Tensor.empty((2, 8, 16), F32)
            with P.when(b % 2 == 0):
                last = Tensor.empty((8, 16), F32)
                move[b](tmp, both[0])
                move[b](both[0], last)
                add[b](last, Y[b])
            with P.otherwise():
                for i in P(2):
                    move[b, i](tmp, both[i])
                add[b](both[1], Y[b])
                for i in P(2):
                    move[b, i](Y[b], both[1 - i])
                add[b](both[0], Y[b])
            square = Tensor.empty((16, 16), F32)
            mix[b](A[b], B[b], square)
            mix[b](square, B[b], C[b])
        for i in P.seq(3):
            turn = Tensor.empty((8, 16), F32)
            move[i](X[0], turn)
            move[i](turn, Z[i])
        grow(Z[0])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_each_turn_has_its_own(family: str) -> None:
    graph, _ = run_package(fresh(), family)
    made = [argument.buffer for task in graph.tasks for argument in task.arguments if argument.buffer >= 6 and argument.writes]
    assert len(set(made)) == graph.n_buffers - 6 >= 6 * 3 + 3 + 3


def parts() -> Workload:
    """In each turn a tensor that is written in parts, read, and written again behind who has read it."""
    X, Y = tensors("XY", 6, 8, 16)

    @workload
    def case() -> None:
        for b in P(4):
            both = Tensor.empty((2, 8, 16), F32)
            for i in P(2):
                move[b, i](X[b], both[i])
            move[b](both[1], Y[b])
            for i in P(2):
                move[b, i](X[5 - b], both[i])
            add[b](both[0], Y[b])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap()], ids=["hybrid", "overlap"])
def test_turns_without_an_order_stay_without_one(deps: Deps) -> None:
    """Nothing of an iteration of the loop waits for anything of another turn."""
    graph, _ = run_package(parts().task_graph(deps=deps))
    assert len(graph.tasks) == 4 * 7
    assert all(before // 7 == after // 7 for before, after in graph.edges())


@pytest.mark.slow
def test_an_ordered_loop_follows_its_turns_though_nothing_is_shared() -> None:
    """The tensor of a turn is not that of the iteration before: their tasks have no data in common."""
    X, Y = tensors("XY", 6, 8, 16)

    @workload
    def case() -> None:
        for i in P.seq(4):
            tmp = Tensor.empty((8, 16), F32)
            move[i](X[i], tmp)
            move[i](tmp, Y[i])
    graph, _ = run_package(case().task_graph(deps=Deps.hybrid()))
    assert all(graph.ancestors[2 * turn] >> (2 * turn - 1) & 1 for turn in range(1, 4))


@pytest.mark.slow
def test_a_lost_edge_of_a_tensor_of_a_turn_is_noticed(tmp_path: Path) -> None:
    root = parts().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="ascend_npu").artifact_dir
    assert root is not None
    shutil.copytree(root, tmp_path / "package")
    source = next((tmp_path / "package" / "orchestration").iterdir())
    source.chmod(0o644)
    lost = [line for line in source.read_text().splitlines() if "readers_both.find(" not in line]
    assert len(lost) < len(source.read_text().splitlines())
    source.write_text("\n".join(lost) + "\n")
    with pytest.raises(AssertionError, match=r"output `|nothing orders them"):
        check_package(tmp_path / "package", "a2a3")


def test_tensors_of_one_body_share_a_scope() -> None:
    """Scopes nest at most 64 deep: those of a body end at one place, and open one scope."""
    X, Y = tensors("XY", 6, 8, 16)

    @workload
    def case() -> None:
        for b in P(6):
            source = X[b]
            for _ in range(70):
                made = Tensor.empty((8, 16), F32)
                move[b](source, made)
                source = made
            move[b](source, Y[b])
    text = emit_orchestration(npu_plan(case()))
    assert text.count("PTO_WSP_SCOPE") == 1 and text.count("pto_wsp::NewTensor") == 70
