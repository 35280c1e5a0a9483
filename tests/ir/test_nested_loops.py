"""Loops that passes put around a body: the first outermost, all of one order, the user's line on each."""

from __future__ import annotations

import pytest

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const, Var
from pto_wsp.ir.tensor_function import Body, nested_loops
from pto_wsp.source import Span

SPAN = Span("model.py", 7)
LOOPS = [(Var("i", 1), Const(3)), (Var("j", 2), Const(5))]


@pytest.mark.parametrize("ordered", [False, True])
def test_the_first_loop_is_outermost(ordered: bool) -> None:
    body: Body = flow.Sequence()
    loops = [item for item in flow.walk(nested_loops(LOOPS, body, SPAN, ordered)) if isinstance(item, flow.Loop)]
    assert [(loop.var, loop.stop) for loop in loops] == LOOPS
    assert all((loop.start, loop.step, loop.ordered, loop.span) == (Const(0), Const(1), ordered, SPAN) for loop in loops)
    assert loops[-1].body is body


def test_no_loop_leaves_the_body() -> None:
    body: Body = flow.Sequence()
    assert nested_loops([], body, SPAN) is body
