"""What surely holds of scalars inside loops: enough to leave out tests of pieces that walk over a region.

>>> nonnegative(sub(extent, minimum(add(mul(j, Const(64)), Const(64)), extent)), {j: (Const(0), ceil_div(extent, Const(64)))})
True
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from pto_wsp.types import scalar as s

Ranges: TypeAlias = Mapping[s.Var, tuple[s.Scalar, s.Scalar]]     # a loop variable: from its first value to below its stop
Terms: TypeAlias = dict[s.Scalar, int]                            # a sum of coefficient times term; a constant by Const(1)

_ONE = s.Const(1)
_MOST_STEPS = 400


def nonnegative(value: s.Scalar, ranges: Ranges, positive: Collection[s.Scalar] = ()) -> bool:
    """Tell whether `value` >= 0 wherever it is computed inside these loops; False where that is not known. `positive`: extents >= 1."""
    return _Proof(ranges, positive).holds(_sum_of(value))


def turns_of(start: s.Scalar, stop: s.Scalar, step: s.Scalar) -> tuple[s.Scalar, s.Scalar]:
    """Return the range of a loop's variable: the step counts where all is known, 0 .. 120 in steps of 32 ends at 96."""
    match start, stop, step:
        case s.Const(int(first)), s.Const(int(end)), s.Const(int(by)) if by > 0 and end > first:
            return start, s.Const(first + (end - 1 - first) // by * by + 1)
        case _:
            return start, stop


class _Proof:
    """One attempt, which ends after so many steps."""

    def __init__(self, ranges: Ranges, positive: Collection[s.Scalar]) -> None:
        self.ranges = ranges
        self.positive = positive
        self.left = _MOST_STEPS

    def holds(self, terms: Terms) -> bool:
        """Tell whether a sum is surely >= 0: choices of min and max first, then loop variables at their worst, then extents."""
        self.left -= 1
        if self.left < 0:
            return False
        for term, factor in terms.items():
            if isinstance(term, s.Binary) and term.op in (s.Op.MIN, s.Op.MAX):
                rest = {other: n for other, n in terms.items() if other != term}
                sides = (self.holds(_plus(rest, _sum_of(side), factor)) for side in (term.lhs, term.rhs))
                smaller = (term.op is s.Op.MIN) == (factor > 0)
                return all(sides) if smaller else any(sides)
        for term, factor in terms.items():
            if isinstance(term, s.Var) and term in self.ranges:
                rest = {other: n for other, n in terms.items() if other != term}
                return self.holds(self._at_worst(rest, factor, *self.ranges[term]))
        least = terms.get(_ONE, 0) + sum(factor for term, factor in terms.items() if term in self.positive)
        return least >= 0 and all(term == _ONE or (isinstance(term, s.ParamExtent) and factor > 0) for term, factor in terms.items())

    def _at_worst(self, rest: Terms, factor: int, first: s.Scalar, stop: s.Scalar) -> Terms:
        if factor > 0:
            return _plus(rest, _sum_of(first), factor)
        if isinstance(stop, s.Binary) and stop.op is s.Op.FLOORDIV and isinstance(stop.rhs, s.Const):
            by = int(stop.rhs.value)
            if by > 0 and factor % by == 0:   # v < e // n: n * v <= e - n
                return _plus(rest, _plus(_sum_of(stop.lhs), {_ONE: -by}, 1), factor // by)
        return _plus(rest, _plus(_sum_of(stop), {_ONE: -1}, 1), factor)


def _sum_of(node: s.Scalar) -> Terms:
    """Return a scalar as a sum; what is no sum, difference or multiple is a term of its own."""
    match node:
        case s.Const(value) if isinstance(value, int):
            return {_ONE: int(value)} if value else {}
        case s.Unary(s.Op.NEG, value):
            return _plus({}, _sum_of(value), -1)
        case s.Binary(s.Op.ADD, lhs, rhs):
            return _plus(_sum_of(lhs), _sum_of(rhs), 1)
        case s.Binary(s.Op.SUB, lhs, rhs):
            return _plus(_sum_of(lhs), _sum_of(rhs), -1)
        case s.Binary(s.Op.MUL, lhs, s.Const(value)) if isinstance(value, int):
            return _plus({}, _sum_of(lhs), int(value))
        case s.Binary(s.Op.MUL, s.Const(value), rhs) if isinstance(value, int):
            return _plus({}, _sum_of(rhs), int(value))
        case _:
            return {node: 1}


def _plus(terms: Terms, more: Terms, factor: int) -> Terms:
    total = dict(terms)
    for term, n in more.items():
        total[term] = total.get(term, 0) + n * factor
    return {term: n for term, n in total.items() if n}
