"""Branches, sparse walks, table reads and slots on the device: the orchestration decides as the interpreter does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Dense, Deps, P, Ragged, Sparse, Symbol, Tensor, Workload, slot_load_u64, slot_set_u64, slot_u64, workload
from tests.npu.dynamic.cases import F32, add, grow, mix, move, run_package, run_with, tensors, whole_numbers
from tests.npu.harness import A2A3_FAST, A5_FAST, check_package

LENS = np.array([0, 5, 3, 9], np.int32)


def text_of(made: Workload) -> str:
    """Return the orchestration of a workload."""
    root = made.compile(target="ascend_npu").artifact_dir
    assert root is not None
    return next((root / "orchestration").iterdir()).read_text()


def branches() -> Workload:
    """Ways by lengths and by the turn; what is read or written in one is written behind it; a handle that leaves a way."""
    X, Y, Z = tensors("XYZ", 8, 8, 16)
    A, B, C = tensors("ABC", 4, 16, 16)
    lens, limit = Tensor(LENS, name="lens"), Symbol("limit")

    @workload
    def case() -> None:
        for b in P(4):
            with P.when(lens[b] > limit):
                made = move[b](X[b], Y[b])
                mix[b](A[b], B[b], C[b])
            with P.elif_((lens[b] > 0) & (b != 2)):
                grow[b](X[b + 4])
                with P.when(b % 2 == 1):
                    move[b](X[b], Y[b])
            with P.otherwise():
                add[b](X[b], Z[b])
            move[b](Y[b], X[b], after=made)
        for b in P.seq(4):
            with P.when(b < 2):
                add[b](X[b], X[b + 1])
        with P.when(limit > 100):
            move(X[0], Y[0])
        move(Z[0], X[0])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
@pytest.mark.parametrize("limit", [4, 101])
def test_ways_are_taken_by_data_and_symbols(family: str, limit: int) -> None:
    run_package(branches(), family, limit=limit)


@pytest.mark.slow
def test_edges_from_data_alone_go_through_ways() -> None:
    run_package(branches().task_graph(deps=Deps.infer_bytes_overlap()), limit=4)


def test_conditions_stay_conditions() -> None:
    text = text_of(branches())
    entry = text[text.index("aicpu_orchestration_entry"):]
    assert "if (limit < (int64_t)pto_wsp::element<int32_t>(lens, b)) {" in entry
    assert "if (pto_scalar_mod_i64(b, 2) == 1) {" in entry
    assert entry.count("} else {") == 2      # of lens[b] > limit and of the elif


@pytest.mark.slow
def test_a_lost_edge_through_a_way_is_noticed(tmp_path: Path) -> None:
    root = branches().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="ascend_npu").artifact_dir
    assert root is not None
    shutil.copytree(root, tmp_path / "package")
    source = next((tmp_path / "package" / "orchestration").iterdir())
    source.chmod(0o644)
    lost = [line for line in source.read_text().splitlines() if "readers_X.find(" not in line]
    assert len(lost) < len(source.read_text().splitlines())
    source.write_text("\n".join(lost) + "\n")
    with pytest.raises(AssertionError, match=r"output `|nothing orders them"):
        check_package(tmp_path / "package", "a2a3", params={"limit": 4})


def guarded() -> Workload:
    """A view that is inside its tensor where its way is taken, and nowhere else."""
    X, Y = tensors("XY", 4, 8, 16)
    lens = Tensor(LENS, name="lens")

    @workload
    def case() -> None:
        for b in P(4):
            with P.when(lens[b] > 4):
                grow[b](Y[b])
                with P.when(lens[b] < 8):
                    move[b](X[lens[b] - 3], Y[b])
            with P.otherwise():
                move[b](X[lens[b]], Y[b])
    return case()


@pytest.mark.slow
def test_a_check_in_a_way_is_made_where_the_way_is_taken() -> None:
    run_package(guarded(), "a5")


@pytest.mark.parametrize("lens", [[0, 5, 3, 7], [0, 5, 4, 9]])
def test_a_check_in_a_way_that_is_taken_ends_the_run_before_it_starts(lens: list[int]) -> None:
    """A length of 7 leads to row 4 of X, which is none, and so does one of 4 the other way."""
    root = guarded().compile(target="ascend_npu").artifact_dir
    assert root is not None
    outcome, given = run_with(root, lens=lens)
    assert not outcome.graph.tasks and (outcome.tensors["Y"] == given["Y"]).all()


def moe() -> Workload:
    """Experts of each token by a sparse row, in order where they add up; weights at the position of each."""
    X, W = tensors("XW", 6, 8, 16)
    Y = Tensor(np.zeros((4, 8, 16), np.float32), name="Y")
    routing = Sparse(Dense[4](), Tensor(np.array([0, 2, 2, 5, 7], np.int32), name="indptr"),
                     Tensor(np.array([1, 5, 0, 3, 4, 1, 2], np.int16), name="indices"))

    @workload
    def case() -> None:
        for b in P(4):
            for e in P.sel.seq(routing[b]):
                with P.when(e != 3):
                    add[b, e](X[e], Y[b])
                with P.otherwise():
                    grow[b, e](Y[b])
        for b, e in P.seq(routing):
            add[b, e](Y[b], W[e])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_sparse_rows_are_walked(family: str) -> None:
    graph, _ = run_package(moe(), family)
    assert len(graph.tasks) == 14


def test_a_column_that_lies_outside_is_refused_before_a_task_is_submitted() -> None:
    text = text_of(moe())
    holds = text[text.index("static bool holds"):text.index("aicpu_orchestration_config")]
    read = r"const int64_t e = \(int64_t\)pto_wsp::element<int16_t>\(indices, e_position\);\n\s+if \(e != 3\) \{\n\s+"
    assert re.search(read + r"if \(!pto_wsp::within\(e, 0,", holds)


def paged() -> Workload:
    """Rows of rows of lengths, and blocks by a page table."""
    K, Y = Tensor(whole_numbers(9, 8, 16), name="K"), Tensor(np.zeros((4, 8, 16), np.float32), name="Y")
    table = Tensor(np.array([[3, 8, 1], [0, 7, 2], [5, 6, 4], [0, 0, 0]], np.int32), name="table")
    counts, inner = Tensor(np.array([2, 0, 3], np.int32), name="counts"), Tensor(np.array([1, 3, 2, 0, 3], np.int32), name="inner")
    offsets = Tensor(np.array([0, 2, 2], np.int32), name="offsets")
    rows = Ragged(Dense[3](), counts)
    pages = Ragged(rows, inner, offsets)

    @workload
    def case() -> None:
        for b in P(3):
            for t in P.seq(rows[b]):
                for j in P.seq(pages[b][t]):
                    add[b, t, j](K[table[t, j]], Y[b])
    return case()


@pytest.mark.slow
def test_rows_of_rows_and_tables_are_read_by_the_orchestration() -> None:
    graph, _ = run_package(paged())
    assert len(graph.tasks) == 1 + 3 + 2 + 0 + 3


def slots() -> Workload:
    """A counter, a bound that the body changes, a slot that only conditions read, and one that nothing reads."""
    X, Y = tensors("XY", 8, 8, 16)
    table, limit = Tensor(np.array([[1, 7], [5, 2]], np.int64), name="table"), Symbol("limit")

    @workload
    def case() -> None:
        slot_load_u64(3, table, 1, 1)
        slot_set_u64(9, 17)
        for b in P.seq(slot_u64(3) + 2):                 # four turns
            with P.when((b > limit) | (slot_u64(5) > 100)):
                slot_set_u64(3, slot_u64(3) + 1)
                slot_set_u64(5, slot_u64(3) * 2)
            with P.when(slot_u64(3) > 2):
                move[b](X[slot_u64(3)], Y[slot_u64(5) - 6])
            with P.otherwise():
                move[b](X[slot_u64(7)], Y[b])
        grow(Y[table[0, 0]])
    return case()


@pytest.mark.parametrize("limit", [0, 2])
def test_slots_hold_numbers_in_program_order(limit: int) -> None:
    run_package(slots(), limit=limit)


@pytest.mark.slow
def test_what_a_slot_holds_is_another_place_when_it_is_set_again() -> None:
    """Equal views of a slot's value are no reason to leave an edge out."""
    X, Y, Z = tensors("XYZ", 4, 8, 16)

    @workload
    def case() -> None:
        slot_set_u64(0, 1)
        move(X[slot_u64(0)], Y[slot_u64(0)])
        slot_set_u64(0, 2)
        move(Y[slot_u64(0)], X[slot_u64(0)])
        move(Z[0], X[1])
        grow(Y[2])
    graph, _ = run_package(case())
    assert {(0, 1), (1, 2), (2, 3)} <= graph.edges()
    run_package(case().task_graph(deps=Deps.infer_bytes_overlap()))


@pytest.mark.slow
def test_a_tensor_written_in_a_way_alone_goes_in_as_well() -> None:
    X, Y = tensors("XY", 4, 8, 16)
    flag = Symbol("flag")

    @workload
    def case() -> None:
        with P.when(flag > 0):
            for b in P(4):
                move[b](X[b], Y[b])
    _, expected = run_package(case(), flag=0)
    assert (expected["Y"] == run_package(case(), flag=0)[1]["Y"]).all()
    assert "tensor 1: Y [4, 8, 16] f32 INOUT" in text_of(case())


@pytest.mark.slow
def test_an_intermediate_of_one_way() -> None:
    """It is made behind the condition's scope, and written in both ways."""
    X, Y = tensors("XY", 4, 8, 16)
    lens, between = Tensor(LENS, name="lens"), Tensor.empty((4, 8, 16), F32, "between")

    @workload
    def case() -> None:
        for b in P(4):
            with P.when(lens[b] > 4):
                move[b](X[b], between[b])
            with P.otherwise():
                move[b](Y[b], between[b])
            add[b](between[b], Y[b])
    run_package(case())
