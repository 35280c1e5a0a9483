"""Races by hand: what is proved, what is shown, what is left open, and why."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Out,
    P,
    Ragged,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    combine,
    kernel,
    pto,
    sequential,
    workload,
)
from pto_wsp.check.races.check import check_races
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import RaceError
from pto_wsp.ir.layout import Contract
from pto_wsp.passes.lower import lower

F32 = DType.F32
PROVED, SHOWN, OPEN = Verdict.PROVED, Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED


@kernel
def put(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def add(x: In[Tile[2, 4, F32]], y: InOut[Tile[2, 4, F32]]) -> None:
    pto.store(y, y + x)


@kernel
def row(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


X = Tensor(np.zeros((32, 16, 4), np.float32), name="X")
Y = Tensor(np.zeros((32, 16, 4), np.float32), name="Y")
lens = Tensor(np.array([1, 2, 3, 4]), name="lens")
table = Tensor(np.arange(16).reshape(4, 4), name="table")
n = Symbol("n")


def findings(body: Callable[[], None]) -> list[Finding]:
    """Return what is found out about the races of a body."""
    return list(check_races(lower(workload(body)().node)).findings)


def verdict(body: Callable[[], None]) -> Verdict:
    """Return the one verdict."""
    (found,) = findings(body)
    return found.verdict


def details(body: Callable[[], None]) -> list[str]:
    """Return the findings as a user reads them."""
    return [f"{found.verdict.value}: {found.check} ({found.detail})" for found in findings(body)]


def promised(contract: Contract, data: Any, name: str) -> Tensor:
    """Return a tensor with a contract."""
    tensor = Tensor(np.asarray(data), name=name)
    tensor.promise(contract)
    return tensor


# ---- loops ----

def test_each_iteration_has_its_own_rows() -> None:
    def body() -> None:
        for b in P(8):
            for t in P(4):
                put(X[b, 2 * t:2 * t + 2], Y[b, 2 * t:2 * t + 2])
    assert details(body) == ["proved: races on `Y` (iterations of b and t touch different elements)"]


def test_slices_that_overlap_by_one_row_race() -> None:
    def body() -> None:
        for t in P(4):
            put(X[0, 2 * t:2 * t + 2], Y[0, t:t + 2])
    assert details(body) == ["counterexample: races on `Y` (Y[0, 1, 0:4] where t = 0, and where t = 1)"]


def test_without_the_outer_index_iterations_of_the_outer_loop_race() -> None:
    def body() -> None:
        for b in P(8):
            for t in P(4):
                put(X[b, 2 * t:2 * t + 2], Y[0, 2 * t:2 * t + 2])
    assert details(body) == ["counterexample: races on `Y` (Y[0, 0:2, 0:4] where b = 0, t = 0, and where b = 1, t = 0)"]


def test_loops_of_one_name_are_both_named() -> None:
    def body() -> None:
        for b in P(3):
            put(X[b, 0:2], Y[0, 0:2])
            for b in P.seq(2):
                put(X[b, 0:2], Y[1, 0:2])
    found = [finding.error for finding in findings(body) if isinstance(finding.error, RaceError)]
    assert found
    assert found[0].found == "Y[0, 0:2, 0:4] is written where b = 0, and again where b = 1"

    def inner() -> None:
        for b in P(3):
            for b in P.seq(2):
                put(X[b, 0:2], Y[1, 0:2])
    found = [finding.error for finding in findings(inner) if isinstance(finding.error, RaceError)]
    assert found[0].found == "Y[1, 0:2, 0:4] is written where b = 0, b = 0, and again where b = 1, b = 0"


def test_an_ordered_loop_does_not_race() -> None:
    def body() -> None:
        for _ in P.seq(4):
            add(X[0, 0:2], Y[0, 0:2])
    assert details(body) == ["proved: races on `Y` (all tasks that touch it are ordered)"]


def test_an_ordered_loop_orders_no_unordered_one_around_it() -> None:
    def body() -> None:
        for _ in P(2):
            for t in P.seq(4):
                add(X[0, 0:2], Y[0, 2 * t:2 * t + 2])
    assert verdict(body) is SHOWN


def test_an_unordered_loop_in_an_ordered_one_may_touch_what_other_turns_do() -> None:
    def body() -> None:
        for _ in P.seq(4):
            for b in P(8):
                add(X[b, 0:2], Y[b, 0:2])
    assert verdict(body) is PROVED


def test_a_loop_of_one_turn_meets_nobody() -> None:
    def body() -> None:
        for _ in P(1):
            put(X[0, 0:2], Y[0, 0:2])
    assert verdict(body) is PROVED


def test_a_reader_and_a_writer_of_neighbours_race() -> None:
    def body() -> None:
        for b in P(8):
            put(X[b, 0:2], Y[b, 0:2])
            put(Y[b + 1, 0:2], Y[b, 2:4])
    assert details(body) == ["counterexample: races on `Y` (Y[1, 0:2, 0:4] where b = 0, and where b = 1)"]


def test_even_and_odd_rows_are_apart() -> None:
    def body() -> None:
        for b in P(8):
            put(X[2 * b, 0:2], Y[2 * b, 0:2])
            put(X[2 * b, 0:2], Y[2 * b + 1, 0:2])
    assert verdict(body) is PROVED


def test_steps_of_a_range_count() -> None:
    def body(step: int) -> Callable[[], None]:
        def made() -> None:
            for b in P(range(0, 12, step)):
                put(X[0, b:b + 2], Y[0, b:b + 2])
        return made
    assert [verdict(body(step)) for step in (1, 2, 3)] == [SHOWN, PROVED, PROVED]


def test_rows_split_by_division_are_apart() -> None:
    def body() -> None:
        for i in P(32):
            row(X[i // 8, i % 8:i % 8 + 1], Y[i // 8, i % 8:i % 8 + 1])
    assert verdict(body) is PROVED


def test_factors_that_lead_out_of_64_bits_prove_nothing() -> None:
    def body(factor: int) -> Callable[[], None]:
        def made() -> None:
            for b in P(8):
                for t in range(5):
                    row(X[b, t:t + 1], Y[b * factor, t:t + 1])
        return made
    assert verdict(body(1)) is PROVED
    assert {found.verdict for found in findings(body(1 << 62))} == {OPEN}      # 0 and 4 times 2^62 are both 0


def test_a_remainder_comes_round_again() -> None:
    def body() -> None:
        for i in P(9):
            row(X[i, 0:1], Y[i % 8, 0:1])
    assert details(body) == ["counterexample: races on `Y` (Y[0, 0, 0:4] where i = 0, and where i = 8)"]


def test_views_through_other_shapes_are_compared_by_element() -> None:
    def body(place: int) -> Callable[[], None]:
        def made() -> None:
            for i in P(4):
                row(X[0, i:i + 1], Y.reshape(64, 8, 4)[2 * i, 3:4])        # the row 16 · i + 3 of all
                row(X[0, i:i + 1], Y[i, place:place + 1])
        return made
    assert [verdict(body(place)) for place in (2, 3, 4)] == [PROVED, PROVED, PROVED]

    def turned() -> None:
        for i in P(4):
            row(X[0, i:i + 1], Y.reshape(64, 8, 4)[2 * i, 3:4])
            row(X[0, i:i + 1], Y[3 - i, 3:4])
    assert details(turned)[0] == "counterexample: races on `Y` (Y[0, 3, 0:4] where i = 0, and where i = 3)"


# ---- sizes that are symbols ----

def test_symbolic_extents_are_proved_for_all() -> None:
    def body() -> None:
        for b in P(n):
            for t in P(DenseDyn(4)):
                put(X[b, 2 * t:2 * t + 2], Y[b, 2 * t:2 * t + 2])
    assert verdict(body) is PROVED


def test_a_race_of_large_sizes_names_them() -> None:
    def body() -> None:
        for b in P(n):
            put(X[b, 0:2], Y[b % 8, 0:2])
    (found,) = findings(body)
    assert found.error is not None and found.error.notes == ("for example with n = 9",)


def test_rows_of_a_symbolic_width_are_apart() -> None:
    def body() -> None:
        for b in P(4):
            for t in P(n):
                row(X[b, t:t + 1], Y.reshape(512, 4)[b * n + t:b * n + t + 1])
    assert verdict(body) is PROVED


# ---- conditions and sides ----

def test_a_condition_keeps_iterations_apart() -> None:
    def body() -> None:
        for b in P(8):
            with P.when(b < 4):
                put(X[b, 0:2], Y[b, 0:2])
            with P.otherwise():
                put(X[b, 0:2], Y[b - 4, 2:4])
    assert verdict(body) is PROVED


def test_otherwise_is_where_no_condition_holds() -> None:
    def body() -> None:
        for b in P(8):
            with P.when(b < 7):
                put(X[b, 0:2], Y[b + 1, 0:2])
            with P.otherwise():
                put(X[b, 0:2], Y[0, 0:2])
    assert verdict(body) is PROVED


def test_a_condition_that_lets_two_through_does_not() -> None:
    def body() -> None:
        for b in P(8):
            with P.when(b < 2):
                put(X[b, 0:2], Y[0, 0:2])
    assert verdict(body) is SHOWN


def test_only_one_iteration_comes_through() -> None:
    def body() -> None:
        for b in P(8):
            with P.when(b == n):
                put(X[b, 0:2], Y[0, 0:2])
    assert verdict(body) is PROVED


def sides(how: Any, first: int, second: int) -> Callable[[], None]:
    """Return a body of two sides on rows of Y."""
    def body() -> None:
        how(workload(lambda: put(X[0, 0:2], Y[0, first:first + 2]))(), workload(lambda: put(X[1, 0:2], Y[0, second:second + 2]))())
    return body


def test_sides_of_a_combine_race_and_those_of_a_sequence_do_not() -> None:
    assert verdict(sides(combine, 0, 1)) is SHOWN
    assert verdict(sides(combine, 0, 2)) is PROVED
    assert verdict(sides(sequential, 0, 1)) is PROVED


# ---- data ----

def test_ragged_rows_are_apart_by_their_outer_index() -> None:
    tokens = Ragged(Dense[4](), lens)

    def body() -> None:
        for b in P(4):
            for t in P(tokens[b]):
                put(X[b, 2 * t:2 * t + 2], Y[b, 2 * t:2 * t + 2])
    assert verdict(body) is PROVED


@pytest.mark.parametrize("monotone", [True, False])
def test_packed_rows_need_offsets_that_never_fall(monotone: bool) -> None:
    offsets = promised(Contract.MONOTONE, [0, 1, 3, 6, 10], "offsets") if monotone else Tensor(np.array([0, 1, 3, 6, 10]), name="offsets")

    def body() -> None:
        for b in P(4):
            for t in P(offsets[b + 1] - offsets[b]):
                row(X[0, t:t + 1], Y[0, offsets[b] + t:offsets[b] + t + 1])
    (found,) = findings(body)
    assert (found.verdict, found.detail.split(":")[-1].strip()) == (
        (PROVED, "iterations of b and t touch different elements, given monotone offsets") if monotone
        else (OPEN, "it depends on what is in `offsets`"))


def test_a_page_table_needs_its_contract() -> None:
    pages = promised(Contract.INJECTIVE, np.arange(16).reshape(4, 4), "pages")

    def body(table: Tensor) -> Callable[[], None]:
        def made() -> None:
            for b in P(4):
                for j in P(4):
                    put(X[b, 0:2], Y[table[b, j], 0:2])
        return made
    assert verdict(body(pages)) is PROVED
    assert verdict(body(table)) is OPEN


def test_an_injective_table_does_not_excuse_one_index_for_two() -> None:
    pages = promised(Contract.INJECTIVE, np.arange(16).reshape(4, 4), "pages")

    def body() -> None:
        for b in P(4):
            for j in P(4):
                put(X[b, 0:2], Y[pages[b, j // 2], 0:2])
    assert verdict(body) is OPEN


def test_the_columns_of_a_sparse_row_are_distinct() -> None:
    routing = Sparse(Dense[4](), np.array([0, 1, 2, 3, 4]), np.array([0, 1, 2, 3]))

    def columns() -> None:
        for b in P.seq(4):
            for e in P.sel(routing[b]):
                put(X[b, 0:2], Y[e, 0:2])

    def of_all_rows() -> None:
        for b in P(4):
            for e in P.sel(routing[b]):
                put(X[b, 0:2], Y[e, 0:2])

    def positions() -> None:
        for b in P(4):
            for e in P.sel(routing[b]):
                put(X[b, 0:2], Y[e.position, 0:2])
    assert [verdict(body) for body in (columns, of_all_rows, positions)] == [PROVED, OPEN, PROVED]


# ---- the error ----

def test_all_of_a_compile_s_errors_are_reported_together() -> None:
    Z = Tensor(np.zeros((4, 4), np.float32), name="Z")

    @workload
    def wrong() -> None:
        for _ in P(4):
            row(X[0, 0:1], Z[0:1])
            row(X[0, 0:1], Y[0, 0:1])
    for target in ("interp", "cpu_sim", "ascend_npu"):
        with pytest.raises(RaceError) as caught:
            wrong().compile(target)
        assert str(caught.value).count("error[W201]") == 2


def test_an_error_pickles_with_both_places() -> None:
    def body() -> None:
        for b in P(8):
            put(X[b, 0:2], Y[b, 0:2])
            put(Y[b + 1, 0:2], Y[b, 2:4])
    error = next(found.error for found in findings(body))
    assert error is not None and len(error.also) == 1
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# ---- many accesses ----

@pytest.mark.slow
def test_tasks_of_an_unrolled_body_are_compared_where_they_may_meet() -> None:
    Z = Tensor(np.zeros((700, 4), np.float32), name="Z")

    def body(step: int) -> Callable[[], None]:
        def made() -> None:
            for b in P(8):
                for t in range(40):
                    put(X[b, 0:2], Z[step * b + 2 * t:step * b + 2 * t + 2])
        return made
    assert [verdict(body(step)) for step in (80, 81)] == [PROVED, PROVED]
    assert SHOWN in {found.verdict for found in findings(body(78))}


def test_sides_with_many_tasks_are_compared_where_they_may_meet() -> None:
    def body(first: int) -> Callable[[], None]:
        def made() -> None:
            one = workload(lambda: [put(X[t, 0:2], Y[t, 0:2]) for t in range(12)])
            two = workload(lambda: [put(X[t, 0:2], Y[first + t, 0:2]) for t in range(12)])
            combine(one(), two())
        return made
    assert verdict(body(12)) is PROVED
    assert [found.verdict for found in findings(body(11))] == [SHOWN]


def test_a_loop_that_never_runs_meets_nobody_among_many() -> None:
    def body() -> None:
        for b in P(8):
            for t in range(8):
                put(X[b, 0:2], Y[b, 2 * t:2 * t + 2])
            for _ in P(0):
                put(X[b, 0:2], Y[0, 0:2])
    assert verdict(body) is PROVED


def test_paged_attention_is_checked_at_once() -> None:
    n_batch, n_heads, n_blocks = 32, 32, 513      # 525,312 tasks
    pages = promised(Contract.INJECTIVE, np.arange(n_batch * n_blocks).reshape(n_batch, n_blocks), "pages")
    K, out = (Tensor(np.zeros((rows, n_heads, 4), np.float32), name=name) for name, rows in (("K", n_batch * n_blocks), ("O", n_batch)))
    tokens = Tensor(np.full(n_batch, n_blocks * 16), name="tokens")

    def body() -> None:
        for b, h in P(n_batch, n_heads):
            for j in P((tokens[b] + 15) // 16):
                row(out[b, h:h + 1], K[pages[b, j], h:h + 1])
            for j in P.seq((tokens[b] + 15) // 16):
                row(K[pages[b, j], h:h + 1], out[b, h:h + 1])
    before = time.process_time()
    found = findings(body)
    assert time.process_time() - before < 1
    assert [finding.verdict for finding in found] == [PROVED, PROVED]


# ---- lengths as they are ----

def test_rows_of_known_lengths_that_meet_are_shown_with_the_lengths() -> None:
    def plan_of(lengths: list[int], row_of: Callable[[Any, Any], Any]) -> tuple[Any, dict[int, Any]]:
        tokens = Ragged(Dense[4](), Tensor(np.array(lengths), name="lens"))

        @workload
        def body() -> None:
            for b in P(4):
                for t in P(tokens[b]):
                    row(X[b, t:t + 1], Y[0, row_of(b, t):row_of(b, t) + 1])
        found, lens = body(), tokens.lengths
        return lower(found.node), {number: lens.data for number, tensor in enumerate(found.tensors) if tensor is lens}

    def outcome(lengths: list[int], row_of: Callable[[Any, Any], Any], given: bool = True) -> tuple[Verdict, str]:
        plan, arrays = plan_of(lengths, row_of)
        assert len(arrays) == 1
        found = check_races(plan, arrays if given else {}).findings[0]
        return found.verdict, found.error.notes[0] if found.error is not None else found.detail.split(": ")[-1]
    assert outcome([0, 2, 0, 3], lambda b, t: t) == (SHOWN, "for example with lens[1] = 2, lens[3] = 3")
    assert outcome([0, 2, 0, 0], lambda b, t: t) == (OPEN, "it depends on what is in `lens`")
    assert outcome([3, 3, 3, 3], lambda b, t: 3 * b + t) == (OPEN, "it depends on what is in `lens`")
    assert outcome([3, 4, 3, 3], lambda b, t: 3 * b + t) == (SHOWN, "for example with lens[1] = 4, lens[2] = 3")
    assert outcome([3, 4, 3, 3], lambda b, t: 3 * b + t, given=False) == (OPEN, "it depends on what is in `lens`")
