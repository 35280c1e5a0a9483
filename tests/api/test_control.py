"""Branches, sparse walks and slots end to end: both targets give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    Deps,
    DispatchPolicy,
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


@pytest.mark.sampled(3)
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


def edges(made: Workload, **bindings: Any) -> list[set[tuple[int, int, str]]]:
    """Return the edges of program order on each target."""
    found = []
    for target in TARGETS:
        graph = made.compile(target).run(**bindings).graph
        found.append({(edge.source, edge.target, reason) for edge in graph.edges for reason in edge.reasons
                      if reason in ("order", "after")})
    return found


@pytest.mark.parametrize("which, expected", [
    (2, {(0, 1), (1, 2), (2, 3)}),      # two tasks in the branch: a chain through it
    (1, {(0, 1), (1, 2)}),
    (0, {(0, 1)}),                      # none: what follows comes after what was before
])
def test_program_order_goes_through_the_branch_that_is_taken(which: int, expected: set[tuple[int, int]]) -> None:
    X, Y = arrays()
    n = Symbol("n")

    @workload
    def ordered() -> None:
        mix(X[0], 1, Y[0])
        with P.when(n == 2):
            mix(X[1], 1, Y[1])
            mix(X[2], 1, Y[2])
        with P.elif_(n == 1):
            mix(X[3], 1, Y[3])
        mix(X[4], 1, Y[4])

    assert edges(ordered(), n=which) == [{(source, target, "order") for source, target in expected}] * 2


def test_a_join_is_of_the_iterations_that_made_tasks() -> None:
    X, Y = arrays()
    lens = Tensor(np.array([0, 1, 0, 1, 1, 0]))

    @workload
    def joined() -> None:
        mix(X[0], 1, Y[0])
        for b in P(range(1, 5)):
            with P.when(lens[b]):
                mix[b](X[b], 1, Y[b])
        mix(X[5], 1, Y[5])

    assert edges(joined()) == [{(0, k, "order") for k in (1, 2, 3)} | {(k, 4, "order") for k in (1, 2, 3)}] * 2


def test_a_handle_of_a_branch_waits_for_what_the_branch_made() -> None:
    X, Y = arrays()
    lens = Tensor(np.array([0, 1, 0, 1, 1, 0]))

    @workload
    def waited() -> None:
        for b in P(ROWS):
            with P.when(lens[b]):
                for k in P.seq(2):
                    made = mix[b, k](X[b], 1, Y[b])
            with P.otherwise():
                other = mix[b](X[b], 2, Y[b])
            mix[b](X[b], 3, Y[b], after=[made, other])

    plan = waited().task_graph(deps=Deps.infer_bytes_overlap())
    expected, at = set(), 0
    for length in lens.data if lens.data is not None else ():
        before = 2 if length else 1
        expected |= {(at + k, at + before, "after") for k in range(before)}
        at += before + 1
    assert edges(plan) == [expected] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_branch_that_is_not_taken_reads_is_not_checked(target: str) -> None:
    X, Y = arrays()
    table, n = Tensor(np.array([4, -1, 9, 0])), Symbol("n")

    @workload
    def guarded() -> None:
        for b in P(ROWS):
            with P.when(b >= 4):
                pass
            with P.elif_(table[b] < 0):          # read where the first condition does not hold: b < 4
                pass
            with P.elif_(table[b] < n):
                mix[b](X[table[b]], 1, Y[b])

    program = guarded().compile(target).run(n=6)
    assert program.stats.task_count == 2
    with pytest.raises(PtoError) as caught:
        program.run(n=10)
    assert (caught.value.code, caught.value.found) == ("R104", "table[b] = 9")


@pytest.mark.slow
def test_a_key_names_columns() -> None:
    X, Y = arrays()
    routing = Sparse(Dense[3](), np.array([0, 2, 3, 5]), np.array([1, 4, 0, 2, 5]))

    @workload
    def keyed() -> None:
        for b in P(3):
            for e in P.seq(routing[b]):
                mix[b](X[e], 1, Y[b])

    for key, expected in ((lambda t: t.e, [1, 0, 0, 2, 1]), (lambda t: t.get("e") + t.b, [1, 0, 1, 0, 1])):
        for target in TARGETS:
            n = 4 if expected[3] == 2 else 2
            program = keyed().dispatch(DispatchPolicy.affinity(key, n)).compile(target).run()
            assert [event.executor for event in program.trace] == expected
            assert program.trace[1].name == "mix[b=0, e=4]"
