"""Which turn of its loops a statement is in, counted from 0, and how many there are at most.

    for i in range(0, n, 16):
        for j in range(0, i, 4):     →      turn (i // 16) * (n // 4) + j // 4, of which there are (n // 16) * (n // 4)

Where the bounds of an inner loop follow the outer one's variable, room is left for the longest of its runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.errors import MixedKernelError
from pto_wsp.expr import kernel as k
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Turns:
    """The turn that a statement is in, as its part counts, and how many there are at most, without loop variables.

    `count` may be negative where there is one loop. `passed`: how far that loop has come, and its step.
    """

    index: s.Scalar
    count: s.Scalar
    passed: tuple[s.Scalar, s.Scalar] | None = None

    def row(self, rows: int) -> s.Scalar:
        """Return the first row of the turn where each has so many: as far as the loop has come, where its step is that."""
        if self.passed is not None and self.passed[1] == s.Const(rows):
            return self.passed[0]
        return s.mul(self.index, s.Const(rows))


_Range = tuple[s.Scalar, s.Scalar]


def turns_of(loops: Sequence[k.For], what: str) -> Turns:
    """Return the turns of loops, outermost first, in which `what` is made.

    Raises: N102 at a loop of whose length nothing is known before the outer ones run.
    """
    index: s.Scalar = s.Const(0)
    count: s.Scalar = s.Const(1)
    ranges: dict[s.Var, _Range] = {}
    for loop in loops:
        start, stop, step = (_range(bound, ranges) for bound in (loop.start, loop.stop, loop.step))
        if start is None or stop is None or step is None:
            raise MixedKernelError(f"how often this loop runs is not known before the loops around it do, and it makes {what} for the "
                                   "other core", loop.span, expected="bounds that grow with the outer loop's variable, or stay",
                                   found=f"range({', '.join(print_scalar(b) for b in (loop.start, loop.stop, loop.step))})",
                                   help="loop to a bound that is known, and skip turns with pto.when")
        longest = s.ceil_div(s.sub(stop[1], start[0]), step[0])
        if len(loops) > 1:
            longest = s.maximum(longest, s.Const(0))
        index = s.add(s.mul(index, longest), _quotient(s.sub(loop.var, loop.start), loop.step))
        count = s.mul(count, longest)
        ranges[loop.var] = start[0], s.maximum(start[0], s.sub(stop[1], s.Const(1)))
    passed = (s.sub(loops[0].var, loops[0].start), loops[0].step) if len(loops) == 1 else None
    return Turns(index, count, passed)


def _quotient(lhs: s.Scalar, rhs: s.Scalar) -> s.Scalar:
    return s.binary(Op.FLOORDIV, lhs, rhs)


def _range(node: s.Scalar, ranges: Mapping[s.Var, _Range]) -> _Range | None:
    """Return the least and the greatest that a scalar can be, in terms of what is known before any loop; None where that is unknown."""
    if not any(isinstance(leaf, s.Var) for leaf in s.leaves(node)):
        return node, node
    match node:
        case s.Var():
            return ranges.get(node)
        case s.Binary(op, lhs, rhs):
            left, right = _range(lhs, ranges), _range(rhs, ranges)
            return None if left is None or right is None else _combined(op, left, right)
        case s.Unary(Op.NEG, value):
            inner = _range(value, ranges)
            return None if inner is None else (s.unary(Op.NEG, inner[1]), s.unary(Op.NEG, inner[0]))
        case s.Select(_, then, other):
            one, two = _range(then, ranges), _range(other, ranges)
            return None if one is None or two is None else (s.minimum(one[0], two[0]), s.maximum(one[1], two[1]))
        case _:
            return None


def _combined(op: Op, left: _Range, right: _Range) -> _Range | None:
    positive = isinstance(right[0], s.Const) and right[0] == right[1] and right[0].value > 0
    match op:
        case Op.ADD | Op.MIN | Op.MAX:
            return s.binary(op, left[0], right[0]), s.binary(op, left[1], right[1])
        case Op.SUB:
            return s.sub(left[0], right[1]), s.sub(left[1], right[0])
        case Op.MUL | Op.FLOORDIV if positive:
            return s.binary(op, left[0], right[0]), s.binary(op, left[1], right[0])
        case Op.MUL if isinstance(left[0], s.Const) and left[0] == left[1] and left[0].value > 0:
            return s.mul(left[0], right[0]), s.mul(left[0], right[1])
        case _:
            return None
