"""What is known of the result of an operation, as a system: all of it where the operation is piecewise linear, else a part.

>>> p, q, m = LinExpr.of("p"), LinExpr.of("q"), LinExpr.of("m")
>>> print(extreme_facts(True, p, q, m))
p - m >= 0
q - m >= 0
(m - p >= 0) or (m - q >= 0)
"""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.verify.affine.linear import LinExpr, System


def extreme_facts(least: bool, left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return that `value` is the smaller (`least`) or the greater of two expressions: exact."""
    sign = 1 if least else -1
    below = System().at_least((left - value) * sign).at_least((right - value) * sign)
    return below.either(System().at_least((value - left) * sign), System().at_least((value - right) * sign))


def product_facts(left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return what the signs of two factors say of their product: exact where one is 0, 1 or -1, else how small it may be.

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


def same_where_equal(value: LinExpr, index: Sequence[LinExpr], other: LinExpr, other_index: Sequence[LinExpr]) -> System:
    """Return that two elements of one table are equal where their indices are."""
    cases = [System().equal(value, other)]
    for one, two in zip(index, other_index, strict=True):
        cases += [System().below(one, two), System().below(two, one)]
    return System().either(*cases)
