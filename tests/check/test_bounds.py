"""Bounds: what depends on loops alone is decided exactly, against every iteration enumerated; what a run binds is left to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp import (
    Channel,
    Dense,
    DType,
    In,
    InOut,
    Out,
    P,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    consume,
    kernel,
    pto,
    send,
    slot_set_u64,
    workload,
)
from pto_wsp.check.bounds import check_bounds
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import RunBoundsError, ViewBoundsError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import numbered_checks
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.passes.lower import lower

F32 = DType.F32


@kernel
def touch(x: InOut[Tile[1, 4, F32]]) -> None:
    pto.store(x, x)


@kernel
def move(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x)


def plan_of(body: object) -> TaskPlan:
    """Trace and lower."""
    return lower(workload(body)().node)  # type: ignore[arg-type]


def index_findings(body: object) -> list[Finding]:
    """Return the verdicts on indices."""
    return [finding for finding in check_bounds(plan_of(body)) if finding.check.startswith("index")]


def verdict(body: object) -> Verdict:
    """Return the one verdict on an index."""
    (finding,) = index_findings(body)
    return finding.verdict


@given(st.integers(-4, 4), st.integers(-4, 4), st.integers(-6, 6), st.integers(1, 12),
       st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(1, 3)), st.integers(0, 4))
def test_affine_indices_are_decided_exactly(a: int, b: int, c: int, rows: int, outer: tuple[int, int, int], inner: int) -> None:
    X = Tensor(np.zeros((rows, 4), np.float32), name="X")
    walk = range(*outer)

    def body() -> None:
        for i in P(walk):
            for j in P(inner):
                touch(x=X[Symbolic((a * i + b * j + c).node)])
    if a == b == 0:   # a constant index is refused where it is written
        return
    points = list(itertools.product(walk, range(inner)))
    outside = [(i, j) for i, j in points if not 0 <= a * i + b * j + c < rows]
    findings = index_findings(body)
    assert {finding.verdict for finding in findings} == {Verdict.COUNTEREXAMPLE if outside else Verdict.PROVED}
    for finding in findings:
        if outside:
            named = dict(part.split(" = ") for part in finding.detail.split(", "))
            i, j = int(named.get("i", walk[0])), int(named.get("j", 0))
            assert (i, j) in outside


def test_a_counterexample_is_an_error_with_the_iteration() -> None:
    X = Tensor(np.zeros((4, 4), np.float32), name="X")

    @workload
    def too_far() -> None:
        for i in P(5):
            touch[i](x=X[i])
    with pytest.raises(ViewBoundsError) as caught:
        too_far().compile(target="interp")
    assert caught.value.code == "T301" and caught.value.notes == ("for example where i = 4",)
    assert (caught.value.expected, caught.value.found) == ("0 .. 3", "4")


def test_all_counterexamples_are_reported_together() -> None:
    X, Y = (Tensor(np.zeros((4, 4), np.float32), name=name) for name in "XY")

    @workload
    def both() -> None:
        for i in P(5):
            touch(x=X[i])
            touch(x=Y[i + 1])
    with pytest.raises(ViewBoundsError) as caught:
        both().compile(target="interp")
    assert str(caught.value).count("error[T301]") == 2


def test_a_slice_that_sticks_out_is_found() -> None:
    X, Y = Tensor(np.zeros((7, 4), np.float32)), Tensor(np.zeros((8, 4), np.float32))

    def body() -> None:
        for i in P(4):
            move(x=X[i * 2:(i + 1) * 2], y=Y[i * 2:(i + 1) * 2])
    assert [f.detail for f in index_findings(body) if f.verdict is Verdict.COUNTEREXAMPLE] == ["i = 3"]


def test_a_clipped_slice_only_has_to_start_inside() -> None:
    X, Y = Tensor(np.zeros((7, 4), np.float32)), Tensor(np.zeros((8, 4), np.float32))

    def body() -> None:
        for i in P(4):
            move(x=X[i * 2:].clip(2, 4), y=Y[i * 2:(i + 1) * 2])
    assert {f.verdict for f in index_findings(body)} == {Verdict.PROVED}


X = Tensor(np.zeros((4, 4), np.float32), name="X")
TABLE = Tensor(np.array([0, 1], np.int32), name="table")


def test_an_index_from_data_is_left_to_the_run() -> None:
    def body() -> None:
        for i in P(2):
            touch(x=X[TABLE[i]])
    assert verdict(body) is Verdict.NOT_PROVED


def test_a_symbolic_extent_is_left_to_the_run() -> None:
    n = Symbol("n")

    def body() -> None:
        for i in P(n):
            touch(x=X[i])
    assert verdict(body) is Verdict.NOT_PROVED


def test_a_symbolic_extent_is_proved_where_a_condition_bounds_it() -> None:
    n = Symbol("n")

    def body() -> None:
        for i in P(n):
            with P.when(i < 4):
                touch(x=X[i])
    assert verdict(body) is Verdict.PROVED


def test_an_index_from_data_is_proved_where_a_condition_bounds_it() -> None:
    def body() -> None:
        for i in P(2):
            with P.when((TABLE[i] >= 0) & (TABLE[i] < 4)):
                touch(x=X[TABLE[i]])
    assert [finding.verdict for finding in index_findings(body)][-1] is Verdict.PROVED


@pytest.mark.parametrize("number, outside", [
    (lambda i: i * i, ["i = 2"]), (lambda i: i // 2, []), (lambda i: i % 3 + 1, []), (lambda i: i.min(3), []),
    (lambda i: (i + 1) * (i + 2) // 3, ["i = 2"]), (lambda i: (i > 1).where(i + 2, i), ["i = 2"]),
])
def test_what_is_not_affine_is_decided(number: Callable[[Any], Any], outside: list[str]) -> None:
    def body() -> None:
        for i in P(3):
            touch(x=X[number(i)])
    assert [f.detail for f in index_findings(body) if f.verdict is Verdict.COUNTEREXAMPLE] == outside
    assert verdict(body) is (Verdict.COUNTEREXAMPLE if outside else Verdict.PROVED)


@given(st.integers(1, 5), st.integers(-1, 3), st.integers(-3, 3), st.integers(-3, 3), st.integers(-2, 4), st.integers(1, 9),
       st.integers(1, 3), st.integers(-3, 6), st.booleans())
def test_triangles_and_conditions_are_decided_exactly(n: int, more: int, a: int, b: int, c: int, rows: int, by: int, limit: int,
                                                      other: bool) -> None:
    """For j below i + more, where i + j < limit or not: X[(a·i + b·j + c) // by]."""
    X = Tensor(np.zeros((rows, 4), np.float32), name="X")

    def body() -> None:
        for i in P(n):
            for j in P((i + more).max(0)):
                with P.when(i + j < limit):
                    if not other:
                        touch(x=X[Symbolic(((a * i + b * j + c) // by).node)])
                with P.otherwise():
                    if other:
                        touch(x=X[Symbolic(((a * i + b * j + c) // by).node)])
    if a == b == 0:
        return
    points = [(i, j) for i in range(n) for j in range(i + more) if (i + j < limit) != other]
    outside = [(i, j) for i, j in points if not 0 <= (a * i + b * j + c) // by < rows]
    (finding,) = index_findings(body)
    assert finding.verdict is (Verdict.COUNTEREXAMPLE if outside else Verdict.PROVED)
    if outside:
        named = dict(part.split(" = ") for part in finding.detail.split(", "))
        assert any(named.get("i", str(i)) == str(i) and named.get("j", str(j)) == str(j) for i, j in outside)


def test_an_index_wrong_only_where_a_condition_excludes_it_is_right() -> None:
    def body() -> None:
        for i in P(4):
            with P.when(i > 0):
                touch(x=X[i - 1])
    assert verdict(body) is Verdict.PROVED


def test_a_wrong_index_behind_a_condition_is_an_error_with_an_iteration_that_comes_to_it() -> None:
    @workload
    def shifted() -> None:
        for i in P(5):
            with P.when(i > 2):
                touch(x=X[i])
    with pytest.raises(ViewBoundsError) as caught:
        shifted().compile(target="interp")
    assert caught.value.notes == ("for example where i = 4",)


def test_a_table_that_tasks_write_is_not_believed_twice() -> None:
    """Between the condition and the index, its elements may have changed."""
    table = Tensor(np.zeros((2, 4), np.int32), name="counts")

    @kernel
    def count(x: InOut[Tile[1, 4, DType.I32]]) -> None:
        pto.store(x, x + 1)

    def body() -> None:
        for i in P(2):
            with P.when((table[i, 0] >= 0) & (table[i, 0] < 4)):
                count(x=table[i])
                touch(x=X[table[i, 0]])
    assert [f.verdict for f in index_findings(body) if "X[" in f.check] == [Verdict.NOT_PROVED]


def test_nothing_is_wrong_in_a_loop_that_never_runs() -> None:
    def body() -> None:
        for _ in P(Dense[0]()):
            for i in P(99):
                touch(x=X[i])
    assert verdict(body) is Verdict.PROVED


def test_the_last_step_of_a_range_counts_and_not_its_end() -> None:
    def body() -> None:
        for i in P(range(0, 6, 3)):
            touch(x=X[i])
    assert verdict(body) is Verdict.PROVED


def test_a_counterexample_that_a_run_may_not_come_to_is_left_to_it() -> None:
    X = Tensor(np.zeros((4, 4), np.float32), name="X")
    n = Symbol("n")

    def guarded() -> None:
        for i in P(4):
            with P.when(i < n):
                touch(x=X[i + 1])

    def behind_a_true_one() -> None:
        for i in P(4):
            with P.when(True):
                pass
            with P.otherwise():
                touch(x=X[i + 1])

    def surely() -> None:
        for i in P(4):
            with P.when(False):
                pass
            with P.otherwise():
                touch(x=X[i + 1])

    def in_a_loop_of_unknown_extent() -> None:
        for i in P(4):
            for _ in P.seq(n):
                touch(x=X[i + 1])

    assert verdict(guarded) is verdict(in_a_loop_of_unknown_extent) is Verdict.NOT_PROVED
    assert verdict(behind_a_true_one) is Verdict.PROVED
    assert verdict(surely) is Verdict.COUNTEREXAMPLE
    (finding,) = index_findings(guarded)
    assert finding.error is None and finding.detail == "guarded at run time: outside where i = 3, if it comes to that"


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_a_guard_in_a_branch_is_for_that_branch(target: str) -> None:
    X = Tensor(np.zeros((4, 4), np.float32), name="X")
    n = Symbol("n")

    @workload
    def guarded() -> None:
        for i in P.seq(4):
            with P.when(i < n):
                touch[i](x=X[i + 1])

    program = guarded().compile(target)
    assert program.run(n=3).stats.task_count == 3
    with pytest.raises(RunBoundsError) as caught:
        program.run(n=4)
    assert (caught.value.expected, caught.value.notes) == ("0 .. 3", ("in the iteration i = 3",))


def test_each_finding_stands_where_its_check_does() -> None:
    X = Tensor(np.zeros((4, 4), np.float32), name="X")
    t = Tensor(np.zeros(4, np.int64), name="t")
    routing = Sparse(Dense[2](), Tensor(np.array([0, 1, 2]), name="indptr"), Tensor(np.array([0, 1]), name="indices"))
    n = Symbol("n")

    def body() -> None:
        for b, e in P.seq(routing):
            slot_set_u64(0, t[e])
            with P.when(t[b] > 0):
                touch(x=X[e])
            with P.elif_(t[n] > 0):
                touch(x=X[b])
    plan = plan_of(body)
    names = [f"{numbered.check.kind.name.lower()} {numbered.check.subject}" for numbered in numbered_checks(plan)]
    assert [finding.check for finding in check_bounds(plan)] == names


@pytest.mark.parametrize("behind", [lambda i: i + 1, lambda i: (i + 1) // 1 * 1 % 9])
def test_a_wrong_index_behind_a_token_is_left_to_the_run(behind: Callable[[Any], Any]) -> None:
    """Nothing is sent, so nothing is wrong; which is not found out, and no example must be given."""
    tokens = Channel("tokens")

    def give() -> None:
        for k in P.seq(0):
            send(tokens, k)

    def take() -> None:
        with consume(tokens):
            for i in P(4):
                touch(x=X[behind(i)])

    def body() -> None:
        with P.pipe():
            workload(give)()
            workload(take)()
    assert verdict(body) is Verdict.NOT_PROVED
