"""Checks that have held are not made again, and those that may not have run are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import Dense, DType, In, Out, P, Sparse, Symbol, Tensor, Tile, kernel, pto, slot_set_u64, slot_u64, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import RunBoundsError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import numbered_checks, submits
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.passes.refine import drop_repeated_checks, verify_after_drop_repeated_checks
from pto_wsp.schedule.schedule import Schedule

CONTEXT = Context(Schedule(), builtin_arch("unit"))


@kernel
def copy(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]):
    pto.store(y, x)


def _tensors() -> tuple[Tensor, Tensor, Tensor]:
    x, y, z = (Tensor(np.zeros((4, 4), np.float32), name=name) for name in "XYZ")
    return x, y, z


def _plan(body: object) -> TaskPlan:
    return drop_repeated_checks(lower(workload(body)().node), CONTEXT)  # type: ignore[arg-type]


def test_a_task_does_not_check_what_the_one_before_it_has() -> None:
    X, Y, Z = _tensors()

    def body() -> None:
        for i in P(4):
            copy[i](x=X[i], y=Y[i])
            copy[i](x=X[i], y=Z[i])

    plan = _plan(body)
    verify_after_drop_repeated_checks(plan)
    first, second = submits(plan)
    assert {c.subject for c in first.note.checks} == {"X[i]", "Y[i]"}
    assert {c.subject for c in second.note.checks} == {"Z[i]"}


def test_a_check_inside_a_loop_does_not_hold_behind_it() -> None:
    X, Y, _ = _tensors()

    def body() -> None:
        for _i in P(0):
            copy(x=X[0], y=Y[0])
        copy(x=X[0], y=Y[0])

    inside, behind = submits(_plan(body))
    assert inside.note.checks == behind.note.checks != ()


def test_a_check_before_a_loop_holds_inside_it() -> None:
    X, Y, _ = _tensors()

    def body() -> None:
        copy(x=X[0], y=Y[0])
        for _i in P(3):
            copy(x=X[0], y=Y[0])

    first, inside = submits(_plan(body))
    assert first.note.checks and not inside.note.checks


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_what_is_dropped_is_still_caught(target: str) -> None:
    X, Y, Z = _tensors()

    @workload
    def both() -> None:
        for i in P(4):
            copy[i](x=X[i], y=Y[i])
            copy[i](x=X[i], y=Z[i])

    program = both().compile(target=target)
    for name in ("X", "Y", "Z"):
        with pytest.raises(RunBoundsError):
            program.run(**{name: np.zeros((3, 4), np.float32)})


def test_the_numbering_is_that_of_what_is_left() -> None:
    X, Y, _ = _tensors()

    def body() -> None:
        for i in P(4):
            copy[i](x=X[i], y=X[i])
            copy[i](x=Y[i], y=X[i])

    plan = run_passes(lower(workload(body)().node), CONTEXT, PASSES)
    assert [n.number for n in numbered_checks(plan)] == list(range(len(numbered_checks(plan))))


def subjects(plan: TaskPlan) -> list[set[str]]:
    """Return what each statement still checks, in the order of the text."""
    found: dict[object, set[str]] = {}
    for numbered in numbered_checks(plan):
        found.setdefault(numbered.check.span, set()).add(numbered.check.subject)
    return list(found.values())


def test_a_check_of_a_branch_holds_in_that_branch_alone() -> None:
    X, Y, Z = _tensors()
    n = Symbol("n")

    def body() -> None:
        copy(x=X[n], y=Y[0])
        with P.when(n > 0):
            copy(x=X[n], y=Y[n])
            copy(x=Z[n], y=Y[n])
        with P.otherwise():
            copy(x=Z[n], y=Y[n])
        copy(x=Z[n], y=Y[n])

    plan = _plan(body)
    verify_after_drop_repeated_checks(plan)
    assert subjects(plan) == [{"X[n]", "Y[0]"}, {"Y[n]"}, {"Z[n]"}, {"Z[n]", "Y[n]"}, {"Z[n]", "Y[n]"}]


def test_what_a_first_condition_reads_is_known_behind_it_and_what_a_later_one_reads_is_not() -> None:
    X, Y, _ = _tensors()
    a, b = (Tensor(np.zeros(4, np.int64), name=name) for name in "ab")
    n = Symbol("n")

    def body() -> None:
        with P.when(a[n] > 0):
            copy(x=X[0], y=Y[a[n]])
        with P.elif_(b[n] > 0):
            copy(x=X[0], y=Y[b[n]])
        copy(x=X[a[n]], y=Y[b[n]])

    plan = _plan(body)
    assert [{"a[n]", "b[n]"} & each for each in subjects(plan)] == [{"a[n]"}, set(), {"b[n]"}, set(), {"b[n]"}]


def test_a_check_of_a_slot_is_made_again_behind_every_set() -> None:
    X, Y, _ = _tensors()
    n = Symbol("n")

    def touch() -> None:
        copy(x=X[slot_u64(0)], y=Y[0])

    def of(between: Callable[[], object]) -> list[bool]:
        def body() -> None:
            touch()
            between()
            touch()
        plan = _plan(body)
        verify_after_drop_repeated_checks(plan)
        return [any(check.subject == "X[slot_u64(0)]" for check in task.note.checks) for task in submits(plan)]

    def in_a_branch() -> None:
        with P.when(n > 0):
            slot_set_u64(0, n)

    def in_a_loop() -> None:
        for _ in P.seq(n):
            touch()
            slot_set_u64(0, n)

    def of_another() -> None:
        slot_set_u64(1, n)

    assert of(of_another) == [True, False]
    assert of(lambda: slot_set_u64(0, n)) == of(in_a_branch) == [True, True]
    assert of(in_a_loop) == [True, True, True]


def test_what_a_walk_reads_holds_in_its_turn() -> None:
    X, Y, _ = _tensors()
    routing = Sparse(Dense[2](), np.array([0, 1, 2]), Tensor(np.array([0, 1]), name="indices"))
    values = Tensor(np.array([0, 1]), name="values")

    def body() -> None:
        for _b, e in P.seq(routing):
            copy(x=X[e], y=Y[values[e.position]])
            copy(x=X[e], y=Y[values[e.position]])

    plan = _plan(body)
    verify_after_drop_repeated_checks(plan)
    first, second = submits(plan)
    assert {check.subject for check in first.note.checks} == {"X[e]", "values[e.position]", "Y[values[e.position]]"}
    assert not second.note.checks
    loops = [numbered for numbered in numbered_checks(plan) if numbered.check.subject == "indices[e.position]"]
    assert len(loops) == 1 and [var.name for var in loops[0].loops] == ["_b", "e.position"]
