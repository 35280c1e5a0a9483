"""Sparse axes: rows, columns, positions, and what can be none."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from pto_wsp.errors import PtoError, ViewBoundsError, WorkloadStructureError
from pto_wsp.ir.axes import Column, Dense, DenseDyn, Ragged, Sparse, walk_of
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Var, print_scalar
from pto_wsp.ir.symbolic import Symbol, Symbolic
from pto_wsp.ir.tensor import Tensor

INDPTR, INDICES = Tensor(np.array([0, 2, 2, 3], np.int32), name="indptr"), Tensor(np.array([1, 4, 0]), name="indices")
N = Symbol("n")
batch = Dense[3]()
routing = Sparse(batch, INDPTR, INDICES)


@pytest.mark.parametrize("position, start, stop", [
    (N, "indptr[n]", "indptr[n + 1]"), (1, "indptr[1]", "indptr[2]"), (np.int64(2), "indptr[2]", "indptr[3]"),
    (N * 2 + 1, "indptr[n * 2 + 1]", "indptr[n * 2 + 2]"), (-1, "indptr[indptr.shape[0] - 2]", "indptr[indptr.shape[0] - 1]"),
    (-3, "indptr[indptr.shape[0] - 4]", "indptr[indptr.shape[0] - 3]"),
    (INDICES[0], "indptr[indices[0]]", "indptr[indices[0] + 1]"),
], ids=repr)
def test_a_row_lies_between_two_entries_of_indptr(position: object, start: str, stop: str) -> None:
    walk = walk_of(routing[position])
    assert (print_scalar(walk.start), print_scalar(walk.stop), print_scalar(walk.step), walk.label) == (start, stop, "1", "Sparse")
    assert walk.leads_to is INDICES and walk.tensors == (INDPTR, INDICES)


def test_arrays_are_wrapped_and_not_copied() -> None:
    indptr, indices = np.array([0, 1]), np.array([5])
    made = Sparse(Dense[1](), indptr, indices)
    assert made.indptr.data is indptr and made.indices.data is indices


def test_axes_made_of_one_array_share_a_tensor() -> None:
    indptr, lens = np.array([0, 1, 2]), np.array([0, 1])
    first, second = Sparse(Dense[2](), indptr, lens), Sparse(DenseDyn(2), indptr, lens.copy())
    assert first.indptr is second.indptr and first.indices is not second.indices
    assert Ragged(Dense[2](), lens).lengths is first.indices
    indptr.shape = (3, 1)      # an array that has changed is another tensor
    with pytest.raises(WorkloadStructureError):
        Sparse(Dense[2](), indptr, lens)


def test_indptr_is_promised_never_to_fall() -> None:
    indptr = Tensor(np.array([0, 1]))
    made = Sparse(Dense[1](), indptr, np.array([5]))
    assert made.indptr.ref.contracts == (Contract.MONOTONE,) and made.indices.ref.contracts == ()
    assert Sparse(Dense[1](), indptr, np.array([5])).indptr.ref.contracts == (Contract.MONOTONE,)       # once
    assert copy.deepcopy(indptr).ref.contracts == (Contract.MONOTONE,)


def test_a_dynamic_outer_axis_takes_any_number_of_rows() -> None:
    for outer in (DenseDyn(7), DenseDyn(N)):
        assert Sparse(outer, INDPTR, INDICES).outer is outer


@pytest.mark.parametrize("make", [
    lambda: Sparse(3.0, INDPTR, INDICES),  # type: ignore[arg-type]
    lambda: Sparse(routing, INDPTR, INDICES),  # type: ignore[arg-type]
    lambda: Sparse(Dense[4](), INDPTR, INDICES), lambda: Sparse(Dense[2](), INDPTR, INDICES),
    lambda: Sparse(batch, np.zeros((4, 1), int), INDICES), lambda: Sparse(batch, INDPTR, np.zeros((3, 1), int)),
    lambda: Sparse(batch, np.zeros(4), INDICES), lambda: Sparse(batch, INDPTR, np.zeros(3)),
    lambda: Sparse(batch, INDPTR, np.zeros(3, bool)),
    lambda: walk_of(routing),
])
def test_what_is_no_sparse_axis_is_refused(make: Any) -> None:
    with pytest.raises(WorkloadStructureError):
        make()


@pytest.mark.parametrize("position", [3, -4])
def test_a_row_that_is_not_there_is_refused(position: int) -> None:
    with pytest.raises(ViewBoundsError):
        routing[position]


@pytest.mark.parametrize("position", [None, "b", INDPTR, 1.5], ids=repr)
def test_a_row_of_no_position_is_refused(position: object) -> None:
    with pytest.raises(PtoError):
        routing[position]


def test_a_column_is_a_scalar_with_a_position() -> None:
    column = Column(Var("e", 1), Var("e.position", 2), ())
    assert repr(column + 1) == "Symbolic(e + 1)" and repr(column.position * 2) == "Symbolic(e.position * 2)"
    assert isinstance(column, Symbolic) and type(column + 0) is Symbolic
    with pytest.raises(PtoError, match="one variable"):
        list(column)
