"""What tasks compute decides which tasks there are: the orchestration waits for it, on the device as in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, InOut, Out, P, PtoError, Tensor, Tile, Workload, kernel, pto, slot_set_u64, slot_u64, workload
from tests.npu.dynamic.cases import add, grow, mix, move, run_package, run_with, tensors
from tests.npu.harness import A2A3_FAST

I32 = DType.I32
GIVEN = np.array([[0, 1, 2, 3, 4, 5, 6, 7], [2, 4, 1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0], [0, 3, 3, 0, 0, 0, 0, 0]], np.int32)


@kernel
def succ(x: In[Tile[1, 8, I32]], y: Out[Tile[1, 8, I32]]) -> None:
    """Count on."""
    pto.store(y, x + 1)


@kernel
def bump(x: InOut[Tile[1, 8, I32]]) -> None:
    """Count on in place."""
    pto.store(x, x + 1)


def given() -> tuple[Tensor, Tensor]:
    """Return numbers, and room for what is made of them."""
    return Tensor(GIVEN, name="given"), Tensor(np.zeros((4, 8), np.int32), name="counts")


def counted() -> Workload:
    """Bounds, conditions and places that tasks have computed, by the task next to them or all of them."""
    X, Y, Z = tensors("XYZ", 8, 8, 16)
    numbers, counts = given()

    @workload
    def case() -> None:
        for b in P(4):
            succ[b](numbers[b], counts[b])
        for b in P(4):
            for i in P.seq(counts[b, 0]):
                add[b, i](X[i], Y[b])
            with P.when(counts[b, 1] > 2):
                move[b](X[counts[b, 2]], Z[b])
            with P.elif_(counts[3 - b, 1] > 2):
                grow[b](Z[b])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_bounds_conditions_and_places_are_computed(family: str) -> None:
    graph, _ = run_package(counted(), family)
    assert len(graph.tasks) == 4 + (1 + 3 + 2 + 1) + 2 + 2


def test_only_what_is_computed_is_checked_late() -> None:
    program = counted().compile(target="ascend_npu")
    root = program.artifact_dir
    assert root is not None
    text = next((root / "orchestration").iterdir()).read_text()
    holds, entry = text.split("aicpu_orchestration_config")
    assert "counts, " not in holds and "given[b]: an index" in holds
    assert "Z[b]: an index" in entry and "given[b]: an index" not in entry
    late = [check for check in program.checks if "no more tasks are submitted" in str(check)]
    assert any("X[counts[b, 2]]" in str(check) for check in late) and not any("given" in str(check) for check in late)


@pytest.mark.slow
def test_a_computed_place_that_lies_outside_ends_the_orchestration_there() -> None:
    """Turn 1 asks for row 9 of X: what came before is done, what comes behind is not."""
    root = counted().compile(target="ascend_npu").artifact_dir
    assert root is not None
    wrong = GIVEN.copy()
    wrong[1, 2] = 8
    outcome, before = run_with(root, given=wrong)
    assert len(outcome.graph.tasks) == 4 + (1 + 1) + 3
    X, Y = before["X"], before["Y"]
    np.testing.assert_array_equal(outcome.tensors["Y"][:4], [Y[0] + X[0], Y[1] + X[0] + X[1] + X[2], Y[2], Y[3]])
    np.testing.assert_array_equal(outcome.tensors["counts"], wrong + 1)


def rewritten() -> Workload:
    """What was read is written again: a bound is read once, a place is read anew, and a slot keeps what it was."""
    X, Y, Z = tensors("XYZ", 16, 8, 16)
    A, B, C = tensors("ABC", 16, 16, 16)
    numbers, counts = given()

    @workload
    def case() -> None:
        succ(numbers[1], counts[0])                        # 3 5 2
        slot_set_u64(0, counts[0, 2])
        for i in P.seq(counts[0, 0]):
            bump[i](counts[0])
            move[i](X[counts[0, 1]], Y[counts[0, 1] - i])
            mix[i](A[counts[0, 2]], B[counts[0, 1] - i], C[i])
        with P.when(slot_u64(0) == counts[0, 2] - 3):
            move(Y[slot_u64(0)], Z[counts[0, 0]])
        with P.otherwise():
            grow(Z[0])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap()], ids=["hybrid", "overlap"])
def test_what_is_written_again_is_read_again(deps: Deps) -> None:
    graph, _ = run_package(rewritten().task_graph(deps=deps))
    assert len([task for task in graph.tasks if task.arguments]) == 1 + 3 * 4 + 1


def between() -> Workload:
    """Numbers that are made for the tasks behind them alone lie in a tensor of the runtime."""
    X, Y = tensors("XY", 8, 8, 16)
    numbers, _ = given()
    counts = Tensor.empty((4, 8), I32, "counts")

    @workload
    def case() -> None:
        grow(Y[0])
        for b in P(4):
            succ[b](numbers[b], counts[b])
        for b in P(4):
            with P.when(counts[b, 0] > 1):
                move[b](X[counts[b, 1]], Y[b])
        grow(Y[7])
    return case()


@pytest.mark.slow
def test_numbers_between_tasks_lie_in_a_tensor_of_the_runtime() -> None:
    graph, _ = run_package(between())
    assert graph.n_buffers == 4      # given, X, Y, and what is allocated
    assert "counts" not in str(between().compile(target="ascend_npu").manifest.tensors)


def test_the_other_runtime_cannot_wait_for_a_task() -> None:
    with pytest.raises(PtoError, match=r"(?s)N101.*host_build_graph cannot read `counts\[b, 0\]`, which tasks write"):
        counted().compile(target="ascend_npu", options={"runtime": "host_build_graph"})
