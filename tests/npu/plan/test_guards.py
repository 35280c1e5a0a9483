"""Guards: checks leave loops with known bounds for their worst turns, and stay where the bounds or the check depend on data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pto_wsp import DenseDyn, DType, In, Out, P, Ragged, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Do, Loop, Sequence
from pto_wsp.ir.plan import Check, CheckKind, Precondition
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.npu.plan.guards import Guard, guards_of
from pto_wsp.npu.plan.model import Launch, NpuPlan
from tests.npu.submits import npu_plan

F32 = DType.F32
ROW, COL, LIMIT = s.Var("i", 0), s.Var("j", 1), s.SymbolRef("limit", 0, DType.I64)


@kernel
def move(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    """Double a tile."""
    pto.store(y, x * 2)


def shown(guards: tuple[Guard, ...], level: int = 0) -> list[str]:
    """Return guards as lines."""
    lines: list[str] = []
    for guard in guards:
        if isinstance(guard, Loop):
            lines += [f"{'  ' * level}for {guard.var.name}", *shown(guard.body.items, level + 1)]
        else:
            assert isinstance(guard, Do) and isinstance(guard.leaf, Check)
            lines.append("  " * level + " <= ".join(print_scalar(node) for node in (guard.leaf.lower, guard.leaf.value, guard.leaf.upper)))
    return lines


def of(value: Workload) -> list[str]:
    """Return the guards of a workload."""
    return shown(guards_of(npu_plan(value)))


def test_a_loop_with_known_bounds_is_checked_at_its_last_turn() -> None:
    X, Y = (Tensor(np.ones((6, 64, 8), np.float32), name=name) for name in "XY")

    @workload
    def case() -> None:
        for b in P(6):
            for i in P(16):
                move[b, i](X[b, i * 4:(i + 1) * 4], Y[5 - b, 60 - i * 4:64 - i * 4])
    assert of(case()) == [
        "0 <= 5 <= X.shape[0] - 1", "60 <= 64 <= X.shape[1]", "8 <= X.shape[2] <= 8",
        "0 <= 5 <= Y.shape[0] - 1", "60 <= 64 <= Y.shape[1]", "8 <= Y.shape[2] <= 8"]


def test_what_depends_on_data_stays_in_its_loop() -> None:
    X, Y = (Tensor(np.ones((6, 64, 4, 8), np.float32), name=name) for name in "XY")
    lens = Tensor(np.ones(6, np.int64), name="lens")
    rows = DenseDyn(6)
    lengths = Ragged(rows, lens)

    @workload
    def case() -> None:
        for b in P(rows):
            for t in P(lengths[b]):
                move[b, t](X[b, t], Y[3, 1])
    found = of(case())
    assert found[:4] == ["0 <= rows <= 9223372036854775807", "for b", "  0 <= b <= lens.shape[0] - 1",
                         "  0 <= lens[b] <= 9223372036854775807"]
    assert "    0 <= t <= X.shape[1] - 1" in found and "    0 <= 3 <= Y.shape[0] - 1" in found


def test_a_loop_that_never_runs_asks_for_nothing() -> None:
    X, Y = (Tensor(np.ones((6, 4, 8), np.float32), name=name) for name in "XY")

    @workload
    def case() -> None:
        for b in P(0):
            move[b](X[b + 9], Y[b])
    assert of(case()) == []


def around(check: Check) -> tuple[Guard, ...]:
    """Return the guards of a check in two loops: i in range(1, 8, 3), j in range(2)."""
    launch = Launch(0, 0, 0, (), (), (), (), 0, (), Precondition((check,)))
    inner = Loop(COL, s.Const(0), s.Const(2), s.Const(1), False, Sequence((Do(launch),)), Precondition())
    outer = Loop(ROW, s.Const(1), s.Const(8), s.Const(3), False, Sequence((inner,)), Precondition())
    return guards_of(NpuPlan("case", (), (LIMIT,), (), Sequence((outer,))))


@pytest.mark.parametrize(("value", "lower", "upper"), [
    (ROW, s.Const(0), LIMIT), (s.sub(s.Const(9), ROW), s.Const(0), LIMIT), (s.add(ROW, s.mul(COL, s.Const(5))), LIMIT, s.Const(13)),
    (s.mul(ROW, s.Const(-2)), s.sub(LIMIT, s.Const(20)), s.Const(-1)),
    (s.add(s.mul(ROW, s.Const(4)), s.Const(4)), s.mul(ROW, s.Const(4)), LIMIT),
    (LIMIT, ROW, s.add(ROW, s.Const(5))), (s.minimum(ROW, LIMIT), s.Const(1), s.Const(6)), (s.mul(ROW, COL), s.Const(0), LIMIT),
    (s.sub(ROW, COL), s.sub(LIMIT, ROW), s.add(LIMIT, s.mul(COL, s.Const(3)))),
])
def test_guards_hold_exactly_where_every_turn_does(value: s.Scalar, lower: s.Scalar, upper: s.Scalar) -> None:
    check = Check(CheckKind.INDEX, value, lower, upper, "X")
    found = around(check)
    for limit in range(-12, 40):
        wanted = all(holds(check, {ROW: i, COL: j, LIMIT: limit}) for i, j in itertools.product(range(1, 8, 3), range(2)))
        assert all_hold(found, {LIMIT: limit}) == wanted


def holds(check: Check, known: dict[s.Scalar, int]) -> bool:
    """Tell whether a check holds."""
    low, middle, high = (s.evaluate(node, known.__getitem__) for node in (check.lower, check.value, check.upper))
    return low <= middle <= high


def all_hold(guards: tuple[Guard, ...], known: dict[s.Scalar, int]) -> bool:
    """Tell whether guards hold, by running their loops."""
    for guard in guards:
        if isinstance(guard, Do) and isinstance(guard.leaf, Check):
            if not holds(guard.leaf, known):
                return False
        else:
            assert isinstance(guard, Loop)
            turns = range(*(int(s.evaluate(node, known.__getitem__)) for node in (guard.start, guard.stop, guard.step)))
            if not all(all_hold(guard.body.items, known | {guard.var: turn}) for turn in turns):
                return False
    return True
