"""Bindings of a run: axes by their names, their tensors by theirs, sizes that change, and what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import Dense, DenseDyn, DType, InOut, P, Program, PtoError, Ragged, Scalar, Sparse, Tensor, Tile, kernel, pto, workload

I64 = DType.I64
TARGETS = ("interp", "cpu_sim")


@kernel
def add(y: InOut[Tile[1, 1, I64]], n: Scalar[I64]) -> None:
    pto.store(y, y + n)


class Routed:
    """A sparse and a ragged axis over rows that a run may bind to another number; Y[b, e] counts what was walked."""

    def __init__(self, target: str, rows: Any = None) -> None:
        Y = Tensor(np.zeros((8, 8, 1), np.int64))
        batch = DenseDyn(3) if rows is None else rows
        indptr, indices = np.array([0, 2, 2, 3]), np.array([1, 4, 0])
        lens = np.array([1, 0, 2])
        routing, tokens = Sparse(batch, indptr, indices), Ragged(batch, lens)

        @workload
        def routed() -> None:
            for b, e in P(routing):
                add(Y[b, e], 1)
            for b in P(batch):
                for t in P(tokens[b]):
                    add(Y[b, t], 10)

        self.Y, self.batch, self.indptr, self.indices, self.lens = Y.data, batch, indptr, indices, lens
        self.program: Program = routed().compile(target)

    def run(self, **bindings: Any) -> dict[tuple[int, int], int]:
        """Run from zeros and return what was counted where."""
        assert self.Y is not None
        self.Y[...] = 0
        self.program.run(**bindings)
        return {(int(b), int(e)): int(self.Y[b, e, 0]) for b, e in np.argwhere(self.Y[..., 0])}


FIRST = {(0, 1): 1, (0, 4): 1, (2, 0): 11, (0, 0): 10, (2, 1): 10}


@pytest.mark.parametrize("target", TARGETS)
def test_axes_are_bound_from_the_objects_and_anew_by_name(target: str) -> None:
    made = Routed(target)
    assert made.run() == FIRST
    indptr, indices, lens = np.array([0, 0, 1, 3]), np.array([7, 2, 3]), np.array([0, 1, 0])
    second = {(1, 7): 1, (2, 2): 1, (2, 3): 1, (1, 0): 10}
    assert made.run(routing=Sparse(made.batch, indptr, indices), tokens=Ragged(made.batch, lens)) == second
    assert made.run(indptr=indptr, indices=indices, lens=lens) == second
    assert made.run(indptr=Tensor(indptr), indices=Tensor(indices), lens=Tensor(lens)) == second
    assert made.run() == FIRST                                     # a binding lasts one run


@pytest.mark.parametrize("target", TARGETS)
def test_an_axis_of_more_rows_takes_its_outer_axis_along(target: str) -> None:
    made = Routed(target)
    indptr, indices = np.array([0, 1, 1, 1, 2, 2]), np.array([6, 7])
    lens = np.array([0, 0, 0, 0, 3])
    more = {(0, 6): 1, (3, 7): 1, (4, 0): 10, (4, 1): 10, (4, 2): 10}
    routing, tokens = Sparse(DenseDyn(5), indptr, indices), Ragged(DenseDyn(5), lens)
    assert made.run(routing=routing, tokens=tokens) == more
    assert made.run(routing=Sparse(made.batch, indptr, indices), lens=lens) == more        # as many rows as indptr says
    assert made.run(batch=5, indptr=indptr, indices=indices, lens=lens) == more
    assert made.run(batch=DenseDyn(5), routing=routing, tokens=tokens) == more
    assert made.run() == FIRST


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_compiled_again(target: str) -> None:
    made = Routed(target)
    plan = made.program.plan
    made.run(routing=Sparse(DenseDyn(4), np.array([0, 0, 0, 0, 1]), np.array([3])), lens=np.array([1, 1, 1, 1]))
    assert made.program.plan is plan and made.program.stats.task_count == 5


def test_changes_in_place_are_seen() -> None:
    made = Routed("cpu_sim")
    assert made.run() == FIRST
    made.indices[2] = 5
    assert made.run() == {**FIRST, (2, 0): 10, (2, 5): 1}
    made.indices[1] = 1
    with pytest.raises(PtoError, match="a row has a column twice"):
        made.run()


def refused(made: Routed, **bindings: Any) -> PtoError:
    """Run with bindings that do not fit; nothing may have run then."""
    with pytest.raises(PtoError) as caught:
        made.run(**bindings)
    assert made.Y is not None and not made.Y.any() and caught.value.code in ("R102", "R113", "R114"), caught.value
    return caught.value


@pytest.mark.parametrize("indptr, indices, message, found", [
    ([0, 2, 1, 3], [1, 4, 0], "axis `routing`: `indptr` falls", "1"),
    ([0, 2, 2, 4], [1, 4, 0], "axis `routing`: `indptr` points outside `indices`", "0 .. 4"),
    ([-1, 2, 2, 3], [1, 4, 0], "axis `routing`: `indptr` points outside `indices`", "-1 .. 3"),
    ([0, 2, 2, 3], [4, 1, 0], "axis `routing`: the columns of a row do not ascend", "1, in row 0"),
    ([0, 0, 1, 3], [5, 4, 4], "axis `routing`: a row has a column twice", "4, in row 2"),
    ([0, 2, 2, 3], [1, 4, -1], "axis `routing`: `indices` holds a column below 0", "indices[2] = -1"),
    ([0, 2, 3], [1, 4, 0], "axis `routing`: `indptr` has one entry a row and one behind the last", "3"),
    ([], [1, 4, 0], "axis `routing`: `indptr` has one entry a row and one behind the last", "0"),
])
def test_rows_that_are_none_are_refused_before_anything_runs(indptr: list[int], indices: list[int], message: str, found: str) -> None:
    made = Routed("interp")
    error = refused(made, indptr=np.array(indptr, np.int64), indices=np.array(indices))
    assert (error.message, error.found) == (message, found)


def test_columns_between_rows_may_fall_and_entries_outside_all_rows_do_not_count() -> None:
    made = Routed("interp")
    assert made.run(indptr=np.array([1, 2, 3, 3]), indices=np.array([-5, 6, 1, 1]))[1, 1] == 1


@pytest.mark.parametrize("bindings, message", [
    (lambda m: {"routing": Ragged(m.batch, m.lens)}, "axis `routing` is bound to something else"),
    (lambda m: {"routing": np.array([1])}, "axis `routing` is bound to something else"),
    (lambda m: {"tokens": Sparse(m.batch, m.indptr, m.indices)}, "axis `tokens` is bound to something else"),
    (lambda m: {"tokens": Ragged(Ragged(m.batch, m.lens), np.zeros((3, 2), int))}, "axis `tokens` is bound to something else"),
    (lambda m: {"routing": Sparse(m.batch, m.indptr, m.indices), "indices": np.array([0, 1, 2])},
     "tensor `indices` is bound twice, to different arrays"),
    (lambda m: {"indices": np.array([0, 1, 2]), "routing": Sparse(m.batch, m.indptr, m.indices)},
     "tensor `indices` is bound twice, to different arrays"),
    (lambda m: {"router": 3}, "the program has nothing called `router` to bind"),
    (lambda m: {"batch": 2}, "axis `routing`: `indptr` has one entry a row and one behind the last"),
    (lambda m: {"indices": np.array([0, 1, 2], np.int32)}, "tensor `indices` is bound to an array of another dtype"),
])
def test_what_does_not_fit_is_refused(bindings: Any, message: str) -> None:
    made = Routed("interp")
    assert refused(made, **bindings(made)).message == message


def test_a_dense_outer_axis_fixes_the_rows() -> None:
    made = Routed("interp", Dense[3]())
    error = refused(made, routing=Sparse(DenseDyn(4), np.array([0, 0, 0, 0, 0]), made.indices))
    assert error.message == "axis `routing` is bound to one with another number of rows" and error.expected == "3 rows"


def test_two_things_of_one_name_are_ambiguous() -> None:
    Y = Tensor(np.zeros((4, 1), np.int64), name="tokens")
    tokens = Ragged(Dense[2](), np.array([1, 2]))

    @workload
    def named() -> None:
        for b in P(2):
            for t in P(tokens[b]):
                add(Y[b + t], 1)

    program = named().compile("interp")
    with pytest.raises(PtoError, match="`tokens` is ambiguous"):
        program.run(tokens=np.zeros((4, 1), np.int64))


@pytest.mark.parametrize("target", TARGETS)
def test_axes_made_of_one_array_are_bound_together(target: str) -> None:
    Y = Tensor(np.zeros((3, 3, 1), np.int64), name="Y")
    lens = np.array([1, 0, 2])
    one, other = Ragged(Dense[3](), lens), Ragged(DenseDyn(3), lens)

    @workload
    def both() -> None:
        for b in P(3):
            for t in P.seq(one[b]):
                add(Y[b, t], 1)
            for t in P.seq(other[b]):
                add(Y[b, t], 10)

    program = both().compile(target)
    assert Y.data is not None
    for bindings in ({"lens": np.array([0, 3, 0])}, {"one": Ragged(Dense[3](), np.array([0, 3, 0]))}):
        Y.data[...] = 0
        program.run(**bindings)
        assert Y.data[..., 0].tolist() == [[0, 0, 0], [11, 11, 11], [0, 0, 0]]


def test_arrays_that_no_variable_holds_are_called_after_their_axis() -> None:
    Y = Tensor(np.zeros((2, 3, 1), np.int64), name="Y")
    batch = Dense[2]()
    routing = Sparse(batch, np.array([0, 1, 2]), np.array([1, 2]))
    pieces = Ragged(Ragged(batch, np.array([1, 1])), np.array([1, 1]), offsets=np.array([0, 1]))

    @workload
    def walked() -> None:
        for b, e in P.seq(routing):
            add(Y[b, e], 1)
        for b in P(batch):
            for t in P.seq(pieces[b][0]):
                add(Y[b, t], 10)

    program = walked().compile("interp")
    names = [slot.ref.name for slot in program.plan.tensors]
    assert names == ["routing_indptr", "routing_indices", "Y", "pieces_lengths", "pieces_offsets"]
    program.run(routing_indices=np.array([0, 2]))
    assert Y.data is not None and Y.data[..., 0].tolist() == [[11, 0, 0], [10, 0, 1]]
