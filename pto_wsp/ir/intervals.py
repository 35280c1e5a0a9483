"""Interval arithmetic: the least and the greatest value of a whole-number scalar, from those of its leaves.

>>> interval(add(mul(i, Const(4)), Const(3)), {i: (0, 7)}.get)
(3, 31)
>>> interval(minimum(n, Const(8)), {i: (0, 7)}.get)
(-inf, 8)
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, Select, Unary

Interval: TypeAlias = tuple[float, float]      # both ends included; an end is an int, or infinite where nothing bounds it
UNBOUNDED: Interval = (-inf, inf)


def interval(node: Scalar, given: Callable[[Scalar], Interval | None]) -> Interval:
    """Return the least and the greatest value that a scalar may have.

    `given` is asked for the interval of each node, operands behind it; where it answers None, the interval follows from the operands, and
    that of a leaf is UNBOUNDED.
    """
    known = given(node)
    if known is not None:
        return known
    match node:
        case Const(value) if type(value) is int:
            return value, value
        case Unary(Op.NEG, value):
            least, greatest = interval(value, given)
            return -greatest, -least
        case Binary(op, lhs, rhs):
            return combined(op, interval(lhs, given), interval(rhs, given))
        case Select(_, then, other):
            one, two = interval(then, given), interval(other, given)
            return min(one[0], two[0]), max(one[1], two[1])
        case _:
            return UNBOUNDED


def combined(op: Op, left: Interval, right: Interval) -> Interval:
    """Return the interval of the results of an operation on values of two intervals."""
    match op:
        case Op.ADD:
            return left[0] + right[0], left[1] + right[1]
        case Op.SUB:
            return left[0] - right[1], left[1] - right[0]
        case Op.MUL:
            ends = [a * b if a and b else 0 for a in left for b in right]      # 0 times an infinite end is 0
            return min(ends), max(ends)
        case Op.MIN:
            return min(left[0], right[0]), min(left[1], right[1])
        case Op.MAX:
            return max(left[0], right[0]), max(left[1], right[1])
        case Op.FLOORDIV if right[0] == right[1] > 0:
            return _quotient(left[0], right[0]), _quotient(left[1], right[0])
        case Op.MOD if right[0] > 0:
            return 0, min(right[1] - 1, left[1]) if left[0] >= 0 else right[1] - 1
        case _:
            return UNBOUNDED


def _quotient(end: float, divisor: float) -> float:
    return end if end in UNBOUNDED else end // divisor
