"""Interval arithmetic holds every value, is exact for numbers, and knows one end where the other is open."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from itertools import product
from math import inf

import pytest

from pto_wsp.ir import scalar as s
from pto_wsp.ir.intervals import UNBOUNDED, Interval, combined, interval
from pto_wsp.ir.scalar import Op

MEANING: Mapping[Op, Callable[[int, int], int]] = {
    Op.ADD: operator.add, Op.SUB: operator.sub, Op.MUL: operator.mul, Op.MIN: min, Op.MAX: max, Op.FLOORDIV: operator.floordiv,
    Op.MOD: operator.mod}
SMALL = [(low, high) for low in range(-4, 5) for high in range(low, 5)]


@pytest.mark.parametrize("op", MEANING, ids=lambda op: op.name)
def test_every_value_is_inside_and_both_ends_are_met(op: Op) -> None:
    for left, right in product(SMALL, SMALL):
        if op in (Op.FLOORDIV, Op.MOD) and right[0] <= 0:
            continue
        values = [MEANING[op](a, b) for a in range(left[0], left[1] + 1) for b in range(right[0], right[1] + 1)]
        low, high = combined(op, left, right)
        assert low <= min(values) and max(values) <= high, (left, right)
        if op is not Op.MOD and (op is not Op.FLOORDIV or right[0] == right[1]):
            assert (low, high) == (min(values), max(values)), (left, right)


@pytest.mark.parametrize("op", MEANING, ids=lambda op: op.name)
def test_an_open_end_bounds_what_a_far_end_bounds(op: Op) -> None:
    """An end at infinity is never tighter than an end far away."""
    far = 1000
    for left, right in product(SMALL, SMALL):
        for opened, near in (((-inf, left[1]), (-far, left[1])), ((left[0], inf), (left[0], far)), (UNBOUNDED, (-far, far))):
            wide, narrow = combined(op, opened, right), combined(op, near, right)
            assert wide[0] <= narrow[0] and narrow[1] <= wide[1], (opened, right)


def test_a_smaller_one_of_two_is_bounded_by_the_one_that_is_known() -> None:
    n = s.SymbolRef("n", 0)
    assert interval(s.Binary(Op.MIN, n, s.Const(8)), {}.get) == (-inf, 8)
    assert interval(s.Binary(Op.MAX, n, s.Const(8)), {}.get) == (8, inf)
    assert interval(s.Binary(Op.MOD, n, s.Const(8)), {}.get) == (0, 7)
    assert interval(s.Binary(Op.MUL, n, s.Const(0)), {}.get) == (0, 0)


def test_what_is_given_stands_for_any_node() -> None:
    i, n = s.Var("i", 0), s.SymbolRef("n", 0)
    rest = s.Binary(Op.SUB, n, i)
    given: dict[s.Scalar, Interval] = {i: (0, 3), rest: (1, inf)}
    assert interval(s.Binary(Op.ADD, rest, i), given.get) == (1, inf)
    assert interval(rest, {i: (0, 3)}.get) == UNBOUNDED


def test_drawn_expressions_stay_inside() -> None:
    draw = random.Random(1)
    variables = [s.Var(f"v{k}", k) for k in range(3)]

    def drawn(depth: int) -> s.Scalar:
        if depth == 0 or draw.random() < 0.2:
            return draw.choice([*variables, s.Const(draw.randint(-3, 5))])
        if draw.random() < 0.1:
            return s.Unary(Op.NEG, drawn(depth - 1))
        if draw.random() < 0.1:
            return s.Select(s.Binary(Op.LT, drawn(0), drawn(0)), drawn(depth - 1), drawn(depth - 1))
        op = draw.choice(list(MEANING))
        return s.Binary(op, drawn(depth - 1), s.Const(draw.randint(1, 4)) if op in (Op.FLOORDIV, Op.MOD) else drawn(depth - 1))

    def value(node: s.Scalar, of: Mapping[s.Scalar, int]) -> int:
        match node:
            case s.Const(number):
                return int(number)
            case s.Unary(_, operand):
                return -value(operand, of)
            case s.Select(s.Binary(_, one, two), then, other):
                return value(then if value(one, of) < value(two, of) else other, of)
            case s.Binary(op, lhs, rhs):
                return MEANING[op](value(lhs, of), value(rhs, of))
            case _:
                return of[node]

    for _ in range(300):
        node = drawn(4)
        given: dict[s.Scalar, Interval] = {var: (low, low + draw.randint(0, 2)) for var in variables for low in [draw.randint(-3, 3)]}
        low, high = interval(node, given.get)
        for numbers in product(*(range(int(a), int(b) + 1) for a, b in given.values())):
            assert low <= value(node, dict(zip(variables, numbers, strict=True))) <= high, node
