"""Branches, sparse walks and slots end to end: both targets give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DType,
    In,
    InOut,
    P,
    PtoError,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    kernel,
    pto,
    slot_load_u64,
    slot_set_u64,
    slot_u64,
    workload,
)

I64 = DType.I64
TARGETS = ("interp", "cpu_sim")
ROWS = 6


@kernel
def mix(x: In[Tile[1, 4, I64]], n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    """No two of these commute: the order of tasks shows."""
    pto.store(y, y * 3 + x + n)


def arrays(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return an input and an output of ROWS rows."""
    rng = np.random.default_rng(seed)
    return Tensor(rng.integers(-9, 9, (ROWS, 4)), name="X"), Tensor(np.zeros((ROWS, 4), np.int64), name="Y")


def runs(made: Workload, Y: Tensor, **bindings: Any) -> Iterator[Any]:
    """Run on both targets from zeros and yield what is in Y."""
    for target in TARGETS:
        Y.data[...] = 0  # type: ignore[index]
        made.compile(target).run(**bindings)
        yield Y.data.copy()  # type: ignore[union-attr]


def check(made: Workload, Y: Tensor, expected: Callable[[np.ndarray[Any, Any]], None], **bindings: Any) -> None:
    """Hold both targets against what plain Python leaves in an array of zeros."""
    wanted = np.zeros_like(Y.data)
    expected(wanted)
    for found in runs(made, Y, **bindings):
        np.testing.assert_array_equal(found, wanted)


def test_the_first_branch_that_holds_runs() -> None:
    X, Y = arrays()
    lens = Tensor(np.array([7, 0, 3, 5, 4, 2]))
    n = Symbol("n")

    @workload
    def chosen() -> None:
        for b in P(ROWS):
            with P.when(lens[b] > n):
                mix[b](X[b], 1, Y[b])
            with P.elif_(lens[b] > 2):
                mix[b](X[b], 2, Y[b])
                mix[b](X[b], 3, Y[b])
            with P.otherwise():
                mix[b](X[b], 4, Y[b])
            mix[b](X[b], 5, Y[b])

    def expected(y: Any) -> None:
        x = X.data
        for b, length in enumerate([7, 0, 3, 5, 4, 2]):
            for k in ([1] if length > 4 else [2, 3] if length > 2 else [4]) + [5]:
                y[b] = y[b] * 3 + x[b] + k  # type: ignore[index]

    check(chosen(), Y, expected, n=4)


@pytest.mark.parametrize("flag", [True, False, 0, 3, np.int64(2), np.bool_(False)], ids=repr)
def test_a_python_constant_is_a_condition(flag: Any) -> None:
    X, Y = arrays()

    @workload
    def constant() -> None:
        with P.when(flag):
            mix(X[0], 1, Y[0])
        with P.otherwise():
            mix(X[0], 2, Y[0])

    def expected(y: Any) -> None:
        y[0] = X.data[0] + (1 if flag else 2)  # type: ignore[index]

    check(constant(), Y, expected)


def test_a_sparse_row_gives_columns_and_their_positions() -> None:
    X, Y = arrays()
    indptr, indices = np.array([0, 2, 2, 5, 6, 6, 8], np.int32), np.array([0, 3, 1, 2, 4, 0, 2, 5], np.int16)
    values = Tensor(np.arange(8) * 10)
    batch = Dense[ROWS]()
    routing = Sparse(batch, indptr, indices)

    @workload
    def walk() -> None:
        for b in P(batch):
            for e in P.sel.seq(routing[b]):
                mix[b, e](X[e], values[e.position], Y[b])

    def expected(y: Any) -> None:
        for b in range(ROWS):
            for p in range(indptr[b], indptr[b + 1]):
                y[b] = y[b] * 3 + X.data[indices[p]] + 10 * p  # type: ignore[index]

    check(walk(), Y, expected)


@pytest.mark.parametrize("walk", [P.sel.seq, P.seq], ids=["sel", "P"])
def test_a_whole_matrix_is_walked_row_by_row(walk: Any) -> None:
    X, Y = arrays()
    indptr, indices = np.array([0, 2, 2, 5, 6, 6, 8]), np.array([0, 3, 1, 2, 4, 0, 2, 5])
    routing = Sparse(Dense[ROWS](), indptr, indices)

    @workload
    def whole() -> None:
        for b, e in walk(routing):
            mix[b, e](X[b], e, Y[e])

    def expected(y: Any) -> None:
        for b in range(ROWS):
            for e in indices[indptr[b]:indptr[b + 1]]:
                y[e] = y[e] * 3 + X.data[b] + e  # type: ignore[index]

    check(whole(), Y, expected)


def test_slots_carry_numbers_along_program_order() -> None:
    X, Y = arrays()
    table = Tensor(np.array([[5, 1], [2, 7], [0, 3]]))

    @workload
    def counted() -> None:
        mix(X[0], slot_u64(3), Y[0])                   # never set: 0
        slot_load_u64(3, table, 1, 1)
        slot_set_u64(4, slot_u64(3) * 2)
        for b in P.seq(slot_u64(3) - 4):               # three turns, whatever the body does to the slot
            slot_set_u64(3, slot_u64(3) + b)
            with P.when(slot_u64(3) > 8):
                mix[b](X[b], slot_u64(3), Y[b])
            with P.otherwise():
                mix[b](X[b], slot_u64(4), Y[b])
        slot_load_u64(5, table[2], 0, 1)
        slot_set_u64(6, table[0, 0])
        mix(X[5], slot_u64(3) + slot_u64(5) + slot_u64(6), Y[slot_u64(5)])

    def expected(y: Any) -> None:
        x: Any = X.data
        y[0] = x[0]
        slot = 7
        for b in range(3):
            slot += b
            y[b] = y[b] * 3 + x[b] + (slot if slot > 8 else 14)
        y[3] = x[5] + slot + 3 + 5

    check(counted(), Y, expected)


def test_a_slot_is_checked_again_after_it_was_set() -> None:
    X, Y = arrays()
    n = Symbol("n")

    @workload
    def moved() -> None:
        slot_set_u64(0, 1)
        mix(X[slot_u64(0)], 1, Y[0])
        with P.when(n > 0):
            slot_set_u64(0, n)
        mix(X[slot_u64(0)], 1, Y[1])

    for target in TARGETS:
        program = moved().compile(target).run(n=0)
        with pytest.raises(PtoError) as caught:
            program.run(n=6)
        assert caught.value.code == "R104" and caught.value.found == "slot_u64(0) = 6"
