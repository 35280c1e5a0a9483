"""What is known of the result of an operation, as a system: all of it where the operation is piecewise linear, else a part.

>>> p, q, m = LinExpr.of("p"), LinExpr.of("q"), LinExpr.of("m")
>>> print(extreme_facts(True, p, q, m))
p - m >= 0
q - m >= 0
(m - p >= 0) or (m - q >= 0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.types.scalar_ops import Op, apply_binary
from pto_wsp.values import dataclass
from pto_wsp.verify.affine.linear import LinExpr, Point, System, fresh


def extreme_facts(least: bool, left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return that `value` is the smaller (`least`) or the greater of two expressions: exact."""
    sign = 1 if least else -1
    below = System().at_least((left - value) * sign).at_least((right - value) * sign)
    return below.either(System().at_least((value - left) * sign), System().at_least((value - right) * sign))


def product_facts(left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return what the signs of two factors say of their product: exact where one is 0, else its sign and how small it may be.

    Source: McCormick, Computability of global solutions to factorable nonconvex programs, 1976 (at the corners ±1).
    """
    cases = [System().equal(left).equal(value), System().equal(right).equal(value)]
    for first in (left, -left):
        for second in (right, -right):
            size = value if (first is left) == (second is right) else -value
            # |a|·|b| >= |a| + |b| - 1, which with |a|, |b| >= 1 is at least either of them
            cases.append(System().at_least(first, 1).at_least(second, 1).at_least(size, first + second - 1))
    return System().either(*cases)


def quotient_facts(rest: bool, left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return what is known of left // right, or of left % right (`rest`), both rounded down and 0 where right is 0."""
    cases = [System().equal(right).equal(value)]
    for first, second, sign in ((left, right, 1), (-left, -right, -1)):
        positive = System().at_least(second, 1)
        small = positive.branch().within(first, 0, second)
        large = positive.branch().at_least(first, second)
        under = positive.branch().below(first, 0)
        if rest:
            for case in (large, under):
                case.within(value * sign, 0, second)
            cases += [small.equal(value * sign, first), large.at_least(first - value * sign, second), under]
        else:
            cases += [small.equal(value), large.within(value, 1, first + 1), under.within(value, first, 0)]
    return System().either(*cases)


@dataclass(frozen=True, slots=True)
class Result:
    """The meaning of a variable that is `op` of two expressions."""

    op: Op
    left: LinExpr
    right: LinExpr
    name: LinExpr

    def value(self, point: Point) -> int:
        """Return the value that a run gives it where the others are as in a point."""
        return int(apply_binary(self.op, self.left.value(point), self.right.value(point)))

    def cases(self, point: Point) -> Iterator[System]:
        """Return systems with one operand fixed, or both, that leave no other value: first as in a point, then small numbers."""
        left, right, value = self.left, self.right, self.name
        here = left.value(point), right.value(point)
        match self.op:
            case Op.MUL:
                for number in dict.fromkeys((here[1], *_SMALL)):
                    yield System().equal(right, number).equal(value, left * number)
                for number in dict.fromkeys((here[0], *_SMALL)):
                    yield System().equal(left, number).equal(value, right * number)
            case Op.FLOORDIV | Op.MOD:
                for number in dict.fromkeys((here[1], *_SMALL)):
                    quotient = fresh("quotient")
                    case = System().equal(right, number)
                    if number == 0:
                        yield case.equal(value)
                        continue
                    rest = left - quotient * number
                    case.within(rest if number > 0 else -rest, 0, abs(number))
                    yield case.equal(value, quotient if self.op is Op.FLOORDIV else rest)
            case Op.AND | Op.OR:
                neutral = -1 if self.op is Op.AND else 0
                yield System().equal(right, neutral).equal(value, left)
                yield System().equal(left, neutral).equal(value, right)
            case _:
                for number in dict.fromkeys((here[0], 0, *_SMALL)):
                    found = int(apply_binary(self.op, number, here[1]))
                    yield System().equal(left, number).equal(right, here[1]).equal(value, found)


_SMALL = (1, 2, 3, 4)


def same_where_equal(value: LinExpr, index: Sequence[LinExpr], other: LinExpr, other_index: Sequence[LinExpr]) -> System:
    """Return that two elements of one table are equal where their indices are."""
    cases = [System().equal(value, other)]
    for one, two in zip(index, other_index, strict=True):
        cases += [System().below(one, two), System().below(two, one)]
    return System().either(*cases)
