"""Axes: what a loop may walk, and how it walks it."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp.errors import PtoError, ViewBoundsError, WorkloadStructureError
from pto_wsp.ir.axes import Dense, DenseDyn, Ragged, walk_of
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, SymbolRef, print_scalar
from pto_wsp.ir.symbolic import Symbol
from pto_wsp.ir.tensor import Tensor

N = Symbol("n")
LENGTHS = Tensor(np.array([3, 0, 5], np.int32), name="lens")


def bounds(axis: object) -> tuple[str, str, str, str]:
    """Return start, stop, step and label of an axis."""
    walk = walk_of(axis)
    return print_scalar(walk.start), print_scalar(walk.stop), print_scalar(walk.step), walk.label


@pytest.mark.parametrize("axis, expected", [
    (Dense[4](), ("0", "4", "1", "Dense[4]")),
    (Dense[0](), ("0", "0", "1", "Dense[0]")),
    (Dense[np.int64(3)](), ("0", "3", "1", "Dense[3]")),
    (5, ("0", "5", "1", "Dense[5]")),
    (np.int32(5), ("0", "5", "1", "Dense[5]")),
    (range(7), ("0", "7", "1", "range(0, 7)")),
    (range(2, 11, 3), ("2", "11", "3", "range(2, 11, 3)")),
    (range(5, 2), ("5", "5", "1", "range(5, 2)")),
    (N, ("0", "n", "1", "n")),
    (N // 2 + 1, ("0", "n // 2 + 1", "1", "n // 2 + 1")),
    (DenseDyn(N), ("0", "n", "1", "DenseDyn")),
    (LENGTHS[1], ("0", "lens[1]", "1", "lens[1]")),
    (Ragged(Dense[3](), LENGTHS)[N], ("0", "lens[n]", "1", "Ragged")),
], ids=lambda value: repr(value) if isinstance(value, tuple) else None)
def test_walks(axis: object, expected: tuple[str, str, str, str]) -> None:
    assert bounds(axis) == expected


def test_a_dense_dyn_axis_starts_with_its_number() -> None:
    axis = DenseDyn(6)
    stop = walk_of(axis).stop
    assert isinstance(stop, SymbolRef) and stop.default == 6
    assert repr(axis) == "DenseDyn(6)"


def test_every_dense_dyn_axis_is_bound_apart() -> None:
    assert walk_of(DenseDyn(6)).stop != walk_of(DenseDyn(6)).stop


def test_a_row_of_a_constant_position_is_checked_at_once() -> None:
    with pytest.raises(ViewBoundsError):
        Ragged(Dense[3](), LENGTHS)[3]


def test_lengths_given_as_an_array_are_wrapped_and_not_copied() -> None:
    lengths = np.array([3, 0, 5])
    assert Ragged(Dense[3](), lengths).lengths.data is lengths


@pytest.mark.parametrize("axis", [3.5, True, "abc", None, [1, 2], range(5, 0, -1), -1, Dense, Ragged(Dense[3](), LENGTHS),
                                  Symbol("f", DType.F32), N < 3, Tensor(np.zeros(3))], ids=repr)
def test_what_is_no_axis_is_refused(axis: object) -> None:
    with pytest.raises(WorkloadStructureError) as caught:
        walk_of(axis)
    assert caught.value.code == "W106"


@pytest.mark.parametrize("make", [
    lambda: Dense[-1], lambda: Dense[1.5], lambda: Dense[True], lambda: Dense["4"], lambda: Dense[N],
    lambda: Dense(4, 4), lambda: Dense(n=4),
    lambda: Dense(), lambda: DenseDyn(-1), lambda: DenseDyn(1.5), lambda: DenseDyn(Symbol("f", DType.F32)),
    lambda: DenseDyn(N < 3), lambda: Ragged(-4, LENGTHS), lambda: Ragged(Dense[4](), LENGTHS),
    lambda: Ragged(Dense[3](), np.zeros(3)), lambda: Ragged(Dense[3](), np.zeros((3, 1), int)),
])
def test_an_axis_that_cannot_be_is_refused(make: object) -> None:
    with pytest.raises(WorkloadStructureError):
        make()  # type: ignore[operator]


def test_lengths_are_an_array_a_list_or_a_tensor() -> None:
    assert Ragged(Dense[3](), [1, 2, 3]).lengths.ref.shape == Ragged(Dense[3](), np.array([1, 2, 3])).lengths.ref.shape
    with pytest.raises(PtoError):
        Ragged(Dense[3](), {1, 2, 3})  # type: ignore[arg-type]


def test_dense_axes_are_told_apart_and_shown() -> None:
    assert Dense[4]() != Dense[4]() and repr(Dense[4]()) == "Dense[4]"
    assert walk_of(Dense[4]()).stop == Const(4)
