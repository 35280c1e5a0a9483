"""Know what holds of extents while a function is traced: which are equal, at most another, or at least 1, whatever their symbols are.

    tt.assume(n <= 64)        is_at_most(n, 64), bound_of(n) = 64
    for i in range(n):        is_at_most(i, n - 1), has_element(n - i)
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.extents import difference, divided, most_times, same, simplified
from pto_wsp.ir.scalar import Const, Element, Op, Scalar, Var, print_scalar
from pto_wsp.source import here
from pto_wsp.trace.tensor.blocks import TracedBodies, TracedLoop


class ExtentFacts:
    """The promises of a function, and what the promises and the open loops say of extents. `naturals`: extents that are never negative."""

    def __init__(self, blocks: TracedBodies) -> None:
        self.assumptions: list[tf.Assumption] = []
        self.naturals: set[Scalar] = set()
        self._blocks = blocks

    def are_same(self, a: Scalar, b: Scalar) -> bool:
        """Tell whether two extents are equal for all values of their symbols, as their normal forms and the assumptions show."""
        if same(a, b) or (self.assumptions and same(a := self._settled(a), b := self._settled(b))):
            return True
        apart = s.sub(a, b)
        for one in self.assumptions:
            match one.condition:
                case s.Binary(Op.EQ, lhs, rhs) if same(apart, s.sub(lhs, rhs)) or same(apart, s.sub(rhs, lhs)):
                    return True
        return False

    def _settled(self, extent: Scalar) -> Scalar:
        """Return an extent with the smaller operand in place of a minimum, where one is at most the other for certain."""
        def smaller(one: Scalar) -> Scalar | None:
            match one:
                case s.Binary(Op.MIN, lhs, rhs):
                    return self._settled(lhs) if self.is_at_most(lhs, rhs) else self._settled(rhs) if self.is_at_most(rhs, lhs) else None
                case _:
                    return None

        return s.substitute(extent, smaller)

    def promise(self, condition: Scalar) -> None:
        """Let each call check a condition on extents and Scalars."""
        if all(known.condition != condition for known in self.assumptions):
            self.assumptions.append(tf.Assumption(condition, here()))

    def is_natural(self, node: Scalar) -> bool:
        """Tell whether a scalar is certainly not negative."""
        if node in self.naturals:
            return True
        match node:
            case Const(value):
                return value >= 0
            case s.SymbolRef():
                slack = (difference(node, s.sub(most, least)) for least, most in self._assumed())
                return node.dtype is None or any(one is not None and one >= 0 for one in slack)
            case Var(_, number):
                loop = self._blocks.loops.get(number)
                return loop is not None and self.is_natural(loop.start)
            case s.Binary(Op.ADD | Op.MUL | Op.MIN, lhs, rhs):
                return self.is_natural(lhs) and self.is_natural(rhs)
            case s.Binary(Op.MAX, lhs, rhs):
                return self.is_natural(lhs) or self.is_natural(rhs)
            case s.Binary(Op.FLOORDIV | Op.MOD, lhs, Const(by)):
                return by > 0 and (node.op is Op.MOD or self.is_natural(lhs))
            case s.Binary(Op.SUB, lhs, rhs):
                return self.is_at_most(rhs, lhs)
            case Element(tensor, _):
                return tensor.dtype.family.value == "uint"
            case _:
                return False

    def is_at_most(self, a: Scalar, b: Scalar) -> bool:
        """Tell whether a <= b for certain."""
        apart = difference(b, a)
        if apart is not None:
            return apart >= 0
        for least, most in self._assumed():
            slack = simplified(s.sub(s.sub(b, a), s.sub(most, least)))
            if _is_sum(slack) and self.is_natural(slack):
                return True
        match a:
            case s.Binary(Op.MIN, lhs, rhs):
                return self.is_at_most(lhs, b) or self.is_at_most(rhs, b)
            case s.Binary(Op.MAX, lhs, rhs):
                return self.is_at_most(lhs, b) and self.is_at_most(rhs, b)
            case Var(_, number) if number in self._blocks.loops:
                loop = self._blocks.loops[number]
                return self.is_at_most(self._last(loop), b) or self.is_at_most(loop.stop, b)
            case s.Binary(Op.ADD | Op.SUB as op, lhs, Const(more)) if self._most(lhs) is not None:
                return self.is_at_most(simplified(s.binary(op, self._most(lhs) or lhs, Const(more))), b)
            case s.Binary(Op.MUL, s.Binary(Op.FLOORDIV, top, Const(by)), Const(times)) if 0 < times <= by and self.is_natural(top):
                return self.is_at_most(top, b)
            case s.Binary(Op.FLOORDIV, top, Const(by)) if by > 0 and self.is_natural(top) and self.is_at_most(top, b):
                return True
            case s.Binary(Op.MUL, Var(), Const()) if self._most(a) is not None:
                return self.is_at_most(self._most(a) or a, b)
        left = simplified(s.sub(b, a))
        return not (isinstance(left, s.Binary) and left.op is Op.SUB) and self.is_natural(left)

    def has_element(self, extent: Scalar) -> bool:
        """Tell whether an extent is certainly 1 or more."""
        match extent:
            case s.Binary(Op.MIN, lhs, rhs):
                return self.has_element(lhs) and self.has_element(rhs)
            case s.Binary(Op.MAX, lhs, rhs):
                return self.has_element(lhs) or self.has_element(rhs)
            case s.Binary(Op.SUB, end, s.Binary(Op.MAX, lhs, rhs)):
                return self.has_element(simplified(s.sub(end, lhs))) and self.has_element(simplified(s.sub(end, rhs)))
            case s.Binary(Op.SUB, end, Var(_, number)) if number in self._blocks.loops:
                return self.is_at_most(self._blocks.loops[number].stop, end)
            case s.Binary(Op.SUB, end, s.Binary(Op.MUL, Var(_, number), Const() as by)) if number in self._blocks.loops:
                return same(self._blocks.loops[number].stop, s.ceil_div(end, by))      # the first position of a block
            case _:
                return self.is_at_most(Const(1), extent)

    def _assumed(self) -> Iterator[tuple[Scalar, Scalar]]:
        """Yield the pairs of scalars of which the first is promised to be no larger."""
        for one in self.assumptions:
            match one.condition:
                case s.Binary(Op.LE | Op.EQ, lhs, rhs) | s.Binary(Op.GE, rhs, lhs):
                    yield lhs, rhs
                case s.Binary(Op.LT, lhs, rhs) | s.Binary(Op.GT, rhs, lhs):
                    yield s.add(lhs, Const(1)), rhs

    @staticmethod
    def _last(loop: TracedLoop) -> Scalar:
        """Return the upper bound of a loop variable: its last value, if the loop's bounds are numbers or a number of steps apart."""
        match loop.start, loop.stop, loop.step:
            case Const(start), Const(stop), Const(step) if start < stop:
                return Const(range(int(start), int(stop), int(step))[-1])
            case start, stop, step if step != Const(1) and divided(s.sub(stop, start), step) is not None:
                return s.sub(stop, step)
            case _:
                return s.sub(loop.stop, Const(1))

    def _most(self, node: Scalar) -> Scalar | None:
        """Return the most that a loop variable, or a multiple of one, can be; None for other scalars."""
        match node:
            case Var(_, number) if number in self._blocks.loops:
                return self._last(self._blocks.loops[number])
            case s.Binary(Op.MUL, Var(_, number), Const(by)) if number in self._blocks.loops and by > 0:
                last = self._last(self._blocks.loops[number])
                return most_times(last, int(by))      # i < (n + 15) // 16: i * 16 <= n - 1
        return None

    def bound_of(self, extent: Scalar) -> int | None:
        """Return the upper bound of an extent: a number, the size of a block, or an assumed bound; None if unknown."""
        return tf.most_of(extent, self._promised)

    def _promised(self, extent: Scalar) -> int | None:
        bounds = [one.bound for one in self.assumptions]
        return min((bound[1] for bound in bounds if bound is not None and same(bound[0], extent)), default=None)


def _is_sum(node: Scalar) -> bool:
    """Tell whether a scalar is a sum of products of symbols, variables and numbers."""
    match node:
        case s.Binary(Op.ADD | Op.MUL, lhs, rhs):
            return _is_sum(lhs) and _is_sum(rhs)
        case _:
            return isinstance(node, s.SymbolRef | Const | Var)


def clips_of(extent: Scalar) -> Iterator[str]:
    """Yield what would have to hold for bounds of slices of symbols to lie inside of their axis."""
    match extent:
        case s.Binary(Op.MAX, bound, Const(0)) | s.Binary(Op.MAX, Const(0), bound) if not _has_clip(bound):
            yield f"{print_scalar(bound)} >= 0"
        case s.Binary(Op.MIN, bound, end):
            inner = bound.lhs if isinstance(bound, s.Binary) and bound.op is Op.MAX else bound
            yield from clips_of(bound)
            if not (_has_clip(inner) or _has_clip(end)):
                yield f"{print_scalar(inner)} <= {print_scalar(end)}"
        case s.Binary(_, lhs, rhs):
            yield from clips_of(lhs)
            yield from clips_of(rhs)


def _has_clip(node: Scalar) -> bool:
    match node:
        case s.Binary(op, lhs, rhs):
            return op in (Op.MIN, Op.MAX) or _has_clip(lhs) or _has_clip(rhs)
        case _:
            return not isinstance(node, s.SymbolRef | Const)
