"""Ragged axes of axes and of ragged axes: padded and flat lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp.errors import ViewBoundsError, WorkloadStructureError
from pto_wsp.ir.axes import Dense, DenseDyn, Ragged, RaggedRow, walk_of
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbol
from pto_wsp.ir.tensor import Tensor

B, T, C = Symbol("b"), Symbol("t"), Symbol("c")
batch = Dense[3]()
LENS = Tensor(np.array([2, 0, 1]), name="lens")
PADDED = Tensor(np.array([[4, 1], [0, 0], [3, 0]], np.int32), name="padded")
CUBE = Tensor(np.ones((3, 2, 4), np.int32), name="cube")
FLAT, OFFSETS = Tensor(np.array([4, 1, 3]), name="flat"), Tensor(np.array([0, 2, 2]), name="offsets")
tokens = Ragged(batch, LENS)


def extent(row: object) -> str:
    """Return how far a row goes."""
    assert isinstance(row, RaggedRow)
    walk = walk_of(row)
    assert print_scalar(walk.start) == "0" and walk.label == "Ragged"
    return print_scalar(walk.stop)


@pytest.mark.parametrize("row, expected", [
    (lambda: tokens[B], "lens[b]"),
    (lambda: Ragged(tokens, PADDED)[B][T], "padded[b, t]"),
    (lambda: Ragged(tokens, PADDED)[B, T], "padded[b, t]"),
    (lambda: Ragged(tokens, PADDED)[2][0], "padded[2, 0]"),
    (lambda: Ragged(tokens, FLAT, offsets=OFFSETS)[B][T], "flat[offsets[b] + t]"),
    (lambda: Ragged(tokens, FLAT, offsets=OFFSETS)[B, 1], "flat[offsets[b] + 1]"),
    (lambda: Ragged(Ragged(tokens, PADDED), CUBE)[B][T][C], "cube[b, t, c]"),
    (lambda: Ragged(Ragged(tokens, FLAT, OFFSETS), CUBE)[B, T][C], "cube[b, t, c]"),
])
def test_a_row_is_as_long_as_its_entry_says(row: Any, expected: str) -> None:
    assert extent(row()) == expected


def test_a_row_knows_the_tensors_that_a_run_binds() -> None:
    assert walk_of(Ragged(tokens, PADDED)[B][T]).tensors == (LENS, PADDED)
    assert walk_of(Ragged(tokens, FLAT, OFFSETS)[B][T]).tensors == (LENS, FLAT, OFFSETS)
    assert OFFSETS.ref.contracts == (Contract.MONOTONE,)
    assert repr(Ragged(tokens, FLAT, OFFSETS)) == "Ragged(Ragged(Dense[3], lens), flat, offsets=offsets)"


@pytest.mark.parametrize("make", [
    lambda: Ragged(tokens, LENS), lambda: Ragged(batch, PADDED), lambda: Ragged(tokens, CUBE), lambda: Ragged(tokens, PADDED, OFFSETS),
    lambda: Ragged(batch, LENS, OFFSETS), lambda: Ragged(Ragged(tokens, PADDED), FLAT, OFFSETS),
    lambda: Ragged(tokens, np.ones((2, 2), int)), lambda: Ragged(tokens, FLAT, np.array([0, 1])), lambda: Ragged(tokens, FLAT, np.zeros(3)),
    lambda: Ragged(tokens[B], PADDED), lambda: Ragged(5, LENS), lambda: walk_of(Ragged(tokens, PADDED)[B]),  # type: ignore[arg-type]
    lambda: walk_of(Ragged(tokens, PADDED)), lambda: Ragged(tokens, PADDED)[B, T, C], lambda: Ragged(tokens, PADDED)[B][T, C],
])
def test_what_is_no_ragged_axis_is_refused(make: Any) -> None:
    with pytest.raises(WorkloadStructureError):
        make()


def test_a_dynamic_outer_axis_takes_any_number_of_lengths() -> None:
    assert Ragged(DenseDyn(9), LENS).first.extent is not None


def test_constant_positions_are_checked_at_once() -> None:
    with pytest.raises(ViewBoundsError):
        Ragged(tokens, PADDED)[3][0]
    with pytest.raises(ViewBoundsError):
        Ragged(tokens, PADDED)[0][2]
