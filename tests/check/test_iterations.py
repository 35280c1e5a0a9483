"""Iterations: what the loops and conditions around a place allow, and when an example holds whatever a run binds."""

from __future__ import annotations

import pytest

from pto_wsp.check.iterations import Answer, Example, Impossible, Iterations, Level, LevelCondition, Undecided
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Consume, Loop, Sequence, Through
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.plan import Precondition
from pto_wsp.ir.scalar import Binary, Const, Element, Op, SymbolRef, Var

ROW, COL = Var("i", 1), Var("j", 2)
N = SymbolRef("n", 3)
TABLE = TensorRef(5, (8,), DType.I32, "table")
NOTHING: frozenset[int] = frozenset()


def loop(var: Var, stop: s.Scalar | int, start: int = 0, step: s.Scalar | int = 1, through: Through | None = None) -> Loop:
    def node(value: s.Scalar | int) -> s.Scalar:
        return Const(value) if isinstance(value, int) else value
    return Loop(var, node(start), node(stop), node(step), False, Sequence(()), Precondition(), through)


def above(levels: list[Level], lhs: s.Scalar, rhs: int, written: frozenset[int] = NOTHING) -> Answer:
    return Iterations(levels, written).where_above(lhs, Const(rhs))


def test_loops_bound_their_variables() -> None:
    nest: list[Level] = [loop(ROW, 4), loop(COL, ROW)]
    assert above(nest, COL, 2) == Impossible()
    assert above(nest, COL, 1) == Example({1: 3, 2: 2})


def test_steps_are_kept_to() -> None:
    assert above([loop(ROW, 10, start=1, step=4)], ROW, 9) == Impossible()
    assert above([loop(ROW, 10, start=1, step=4)], ROW, 8) == Example({1: 9})
    assert above([loop(ROW, 9, start=1, step=4)], ROW, 5) == Impossible()


def test_a_step_that_is_not_known_gives_no_example() -> None:
    assert above([loop(ROW, 10, step=N)], ROW, 9) == Impossible()
    assert above([loop(ROW, 10, step=N)], ROW, 8) == Undecided()


def test_conditions_hold_or_do_not() -> None:
    small = Binary(Op.LT, ROW, Const(3))
    assert above([loop(ROW, 10), LevelCondition(small, True)], ROW, 2) == Impossible()
    assert above([loop(ROW, 10), LevelCondition(small, False)], ROW, 8) == Example({1: 9})
    assert above([loop(ROW, 3), LevelCondition(small, False)], ROW, 0) == Impossible()


def test_what_a_run_binds_is_no_example() -> None:
    assert above([loop(ROW, N)], ROW, 5) == Undecided()
    assert above([loop(ROW, N), LevelCondition(Binary(Op.LE, N, Const(6)), True)], ROW, 5) == Impossible()


def test_sizes_are_as_declared() -> None:
    size = SymbolRef("m", 4, default=6)
    assert above([loop(ROW, size)], ROW, 5) == Impossible()
    assert above([loop(ROW, size)], ROW, 4) == Example({1: 5})
    assert above([loop(ROW, s.DimOf(TABLE, 0))], ROW, 6) == Example({1: 7})


@pytest.mark.parametrize("written, answer", [(NOTHING, Impossible()), (frozenset({5}), Undecided())])
def test_what_a_table_holds_is_the_same_each_time_unless_tasks_write_it(written: frozenset[int], answer: Answer) -> None:
    value = Element(TABLE, (ROW,))
    assert above([loop(ROW, 4), LevelCondition(Binary(Op.LT, value, Const(3)), True)], value, 2, written) == answer
    assert above([loop(ROW, 4)], value, 2, written) == Undecided()


def test_a_sparse_row_leads_to_what_its_table_holds() -> None:
    inside = loop(ROW, 4, through=Through(COL, Element(TABLE, (ROW,)), Precondition()))
    limit = LevelCondition(Binary(Op.LT, Element(TABLE, (ROW,)), Const(3)), True)
    assert above([inside, limit], COL, 2) == Impossible()
    assert above([inside], COL, 2) == Undecided()


def test_a_token_that_may_not_come_gives_no_example() -> None:
    tokens = Consume(0, (COL,), Sequence(()), 0)
    assert above([loop(ROW, 4), tokens], ROW, 3) == Impossible()
    assert above([loop(ROW, 4), tokens], ROW, 2) == Undecided()
    assert above([loop(ROW, 4), tokens], COL, 2) == Undecided()
