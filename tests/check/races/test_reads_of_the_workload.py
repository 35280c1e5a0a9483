"""Elements that the workload reads itself take part in races: in a loop's bound, a condition, an index, a scalar, a slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import Dense, DType, In, Out, P, Scalar, Sparse, Tensor, Tile, combine, kernel, pto, sequential, slot_set_u64, workload
from pto_wsp.check.races.check import check_races
from pto_wsp.check.verdict import Verdict
from pto_wsp.errors import RaceError
from pto_wsp.ir.rewrite import canonical
from pto_wsp.passes.lower import lower

I64 = DType.I64
n, Y = Tensor(np.zeros((8, 1), np.int64), name="n"), Tensor(np.zeros((8, 1, 4), np.int64), name="Y")


@kernel
def put(k: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), k, I64))


@kernel
def fill(k: Scalar[I64], y: Out[Tile[1, 4, I64]]) -> None:
    pto.store(y, pto.full((1, 4), k, I64))


def found(body: Callable[[], object]) -> tuple[Verdict, list[RaceError]]:
    """Return what is found out about `n`, and the errors."""
    races = check_races(lower(canonical(workload(body)().node).workload))
    findings = [finding for finding in races.findings if finding.check == "races on `n`"]
    verdicts = {finding.verdict for finding in findings}
    worst = next(v for v in (Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED, Verdict.PROVED) if v in verdicts)
    return worst, [finding.error for finding in findings if isinstance(finding.error, RaceError)]


def reads(where: str, e: Any, at: Any) -> None:
    """Read n[at] in iteration e, for something that does not depend on its value otherwise."""
    match where:
        case "bound":
            for _ in P.seq(n[at, 0]):
                fill[e](k=1, y=Y[e])
        case "condition":
            with P.when(n[at, 0] > 3):
                fill[e](k=1, y=Y[e])
        case "second condition":
            with P.when(e > 100):
                fill[e](k=1, y=Y[e])
            with P.elif_(n[at, 0] > 3):
                fill[e](k=1, y=Y[e])
        case "scalar":
            fill[e](k=n[at, 0], y=Y[e])
        case "bracket":
            fill[n[at, 0]](k=1, y=Y[e])


WHERE = ("bound", "condition", "second condition", "scalar", "bracket")


@pytest.mark.parametrize("where", WHERE)
def test_what_another_iteration_writes_is_a_race(where: str) -> None:
    def body() -> None:
        for e in P(4):
            put[e](k=e, y=n[e:e + 1])
            reads(where, e, 3 - e)
    verdict, errors = found(body)
    assert verdict is Verdict.COUNTEREXAMPLE
    assert "the workload reads elements of `n`" in errors[0].message


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("ordered", ["own element", "loop before", "ordered loop", "written behind"])
def test_what_is_written_in_order_is_none(where: str, ordered: str) -> None:
    def body() -> None:
        match ordered:
            case "own element":
                for e in P(4):
                    put[e](k=e, y=n[e:e + 1])
                    reads(where, e, e)
            case "loop before":
                for e in P(4):
                    put[e](k=e, y=n[e:e + 1])
                for e in P(4):
                    reads(where, e, 3 - e)
            case "ordered loop":
                for e in P.seq(4):
                    put[e](k=e, y=n[e:e + 1])
                    reads(where, e, 3 - e)
            case "written behind":
                for e in P(4):
                    reads(where, e, 3 - e)
                for e in P(4):
                    put[e](k=e, y=n[e:e + 1])
    assert found(body) == (Verdict.PROVED, [])


def test_a_condition_is_read_only_where_those_before_it_do_not_hold() -> None:
    def body() -> None:
        for e in P(4):
            with P.when(e == 3):
                put[e](k=1, y=n[0:1])
            with P.elif_(n[0, 0] > 0):
                fill[e](k=1, y=Y[e])
    assert found(body)[0] is Verdict.COUNTEREXAMPLE     # e = 3 writes what the others read

    def alone() -> None:
        for e in P(4):
            with P.when(e < 3):
                fill[e](k=1, y=Y[e])
            with P.elif_(n[0, 0] > 0):                  # e = 3 alone gets here
                fill[e](k=1, y=Y[e])
                put[e](k=1, y=n[0:1])
    assert found(alone)[0] is Verdict.PROVED


def test_sides_without_an_order_race_and_ordered_ones_do_not() -> None:
    @workload
    def writes() -> None:
        put(k=2, y=n[0:1])

    @workload
    def reading() -> None:
        reads("bound", 0, 0)

    assert found(lambda: combine(writes(), reading()))[0] is Verdict.COUNTEREXAMPLE
    assert found(lambda: sequential(writes(), reading()))[0] is Verdict.PROVED


def test_processes_race_where_no_token_orders_them() -> None:
    def body() -> None:
        with P.pipe():
            put(k=2, y=n[0:1])
            reads("bound", 0, 0)
    verdict, errors = found(body)
    assert verdict is Verdict.COUNTEREXAMPLE and errors[0].found == "n[0, 0] is written by one and read by the other"


def test_a_slot_that_is_set_of_it() -> None:
    def body() -> None:
        for e in P(4):
            put[e](k=e, y=n[e:e + 1])
            slot_set_u64(0, n[3 - e, 0])
    assert found(body)[0] is Verdict.COUNTEREXAMPLE


def test_the_columns_of_a_sparse_axis_that_tasks_write() -> None:
    """Which rows its walks touch depends on what is in it: nothing is proved, and nothing claimed."""
    indices = Tensor(np.zeros(8, np.int64), name="n")
    rows = Dense[4]()
    routing = Sparse(rows, Tensor(np.arange(5) * 2, name="indptr"), indices)

    @kernel
    def columns(k: Scalar[I64], y: Out[Tile[1, 2, I64]]) -> None:
        pto.store(y, pto.full((1, 2), k, I64))

    def racy() -> None:
        for b in P(rows):
            columns[b](k=b, y=indices[6 - b * 2:8 - b * 2])
            for _ in P.sel.seq(routing[b]):
                fill[b](k=1, y=Y[b])

    def fine() -> None:
        for b in P(rows):
            columns[b](k=b, y=indices[b * 2:b * 2 + 2])
        for b in P(rows):
            for _ in P.sel.seq(routing[b]):
                fill[b](k=1, y=Y[b])
    assert found(racy)[0] in (Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED) and found(fine)[0] is Verdict.PROVED


def test_a_table_that_no_task_writes_has_nothing_to_race_with() -> None:
    table = Tensor(np.zeros((4, 1), np.int64), name="table")

    @kernel
    def copy(x: In[Tile[1, 1, I64]], y: Out[Tile[1, 1, I64]]) -> None:
        pto.store(y, x)

    def body() -> None:
        for e in P(4):
            for i in P.seq(table[3 - e, 0]):
                copy[e, i](x=table[e:e + 1], y=n[e:e + 1])
    assert found(body) == (Verdict.PROVED, [])
