"""Checks that have held are not made again, and those that may not have run are."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import RunBoundsError
from pto_wsp.expr.rewrite import canonical
from pto_wsp.plan.lower import lower
from pto_wsp.plan.model import Context, TaskPlan, numbered_checks, submits
from pto_wsp.plan.passes import run_passes
from pto_wsp.plan.repeats import drop_repeated_checks, verify_after_drop_repeated_checks
from pto_wsp.schedule.schedule import Schedule

CONTEXT = Context(Schedule(), builtin_arch("unit"))


@kernel
def copy(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]):
    pto.store(y, x)


def _tensors() -> tuple[Tensor, Tensor, Tensor]:
    x, y, z = (Tensor(np.zeros((4, 4), np.float32), name=name) for name in "XYZ")
    return x, y, z


def _plan(body: object) -> TaskPlan:
    return drop_repeated_checks(lower(canonical(workload(body)()._node).workload), CONTEXT)  # type: ignore[arg-type]


def test_a_task_does_not_check_what_the_one_before_it_has() -> None:
    X, Y, Z = _tensors()

    def body() -> None:
        for i in P(4):
            copy[i](x=X[i], y=Y[i])
            copy[i](x=X[i], y=Z[i])

    plan = _plan(body)
    verify_after_drop_repeated_checks(plan)
    first, second = submits(plan)
    assert {c.subject for c in first.checks} == {"X[i]", "Y[i]"}
    assert {c.subject for c in second.checks} == {"Z[i]"}


def test_a_check_inside_a_loop_does_not_hold_behind_it() -> None:
    X, Y, _ = _tensors()

    def body() -> None:
        for _i in P(0):
            copy(x=X[0], y=Y[0])
        copy(x=X[0], y=Y[0])

    inside, behind = submits(_plan(body))
    assert inside.checks == behind.checks != ()


def test_a_check_before_a_loop_holds_inside_it() -> None:
    X, Y, _ = _tensors()

    def body() -> None:
        copy(x=X[0], y=Y[0])
        for _i in P(3):
            copy(x=X[0], y=Y[0])

    first, inside = submits(_plan(body))
    assert first.checks and not inside.checks


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

    plan = run_passes(lower(canonical(workload(body)()._node).workload), CONTEXT)
    assert [n.number for n in numbered_checks(plan)] == list(range(len(numbered_checks(plan))))
