"""Translate scalar expressions into linear expressions; a nonlinear operation becomes a variable with facts.

Sums and constant multiples are exact. `//` and `%` by a constant, min, max, where and comparisons are exact too: the facts determine the
variable. Products, division by a variable and all other operations become opaque variables with weaker facts. So a system admits every
point that a run can reach, and possibly more. Equal opaque expressions share one variable. Integers are unbounded here; the wrap-around of
a run at 64 bits is not modelled.

>>> p, q, m = LinExpr.of("p"), LinExpr.of("q"), LinExpr.of("m")
>>> print(extreme_facts(True, p, q, m))
p - m >= 0
q - m >= 0
(m - p >= 0) or (m - q >= 0)

>>> translator = Translator()
>>> copy = translator.scope({})
>>> b = s.Var("b", 0)
>>> print(copy.linear(Binary(Op.ADD, Binary(Op.MUL, b, Const(16)), Const(3))))
16*b + 3
>>> print(copy.condition(Binary(Op.LT, b, Binary(Op.MIN, s.SymbolRef("n", 0), Const(8)))))
n - b - 1 >= 0
-b + 7 >= 0
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import gcd

from pto_wsp.check.affine.linear import LinExpr, Point, System, Variable, VarKind, fresh_variable
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType, Family
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Binary, Const, Element, Op, Select, Unary, apply_binary, print_scalar, scalar_dtype
from pto_wsp.values import dataclass


# -- facts of single operations ----------------------------------------------------------------------------------------
def extreme_facts(least: bool, left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return the constraint that `value` is the minimum (`least`) or the maximum of two expressions; exact."""
    sign = 1 if least else -1
    below = System().at_least((left - value) * sign).at_least((right - value) * sign)
    return below.either(System().at_least((value - left) * sign), System().at_least((value - right) * sign))


def product_facts(left: LinExpr, right: LinExpr, value: LinExpr) -> System:
    """Return what the signs of two factors imply for their product.

    The product is exact if a factor is 0; otherwise the sign and a lower bound of the size follow.

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
    """Return facts of left // right, or of left % right (`rest`); both round down and are 0 if `right` is 0."""
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
        """Return the value of the operation at a point."""
        return int(apply_binary(self.op, self.left.value(point), self.right.value(point)))

    def cases(self, point: Point) -> Iterator[System]:
        """Yield systems that fix one or both operands, which determines the result: numbers at the point first, then small numbers."""
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
                    quotient = fresh_variable("quotient")
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
                    result = int(apply_binary(self.op, number, here[1]))
                    yield System().equal(left, number).equal(right, here[1]).equal(value, result)


_SMALL = (1, 2, 3, 4)


def same_where_equal(value: LinExpr, index: Sequence[LinExpr], other: LinExpr, other_index: Sequence[LinExpr]) -> System:
    """Return the constraint that two elements of one table are equal if their indices are equal."""
    cases = [System().equal(value, other)]
    for mine, theirs in zip(index, other_index, strict=True):
        cases += [System().below(mine, theirs), System().below(theirs, mine)]
    return System().either(*cases)


# -- translation -------------------------------------------------------------------------------------------------------
_OPPOSITE: Mapping[Op, Op] = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}


@dataclass(frozen=True, slots=True)
class Application:
    """An element of a table at an index, with the variable of its value."""

    variable: Variable
    tensor: TensorRef
    index: tuple[LinExpr, ...]

    @property
    def value(self) -> LinExpr:
        """The element's value as an expression."""
        return LinExpr.of(self.variable)


class Translator:
    """The variables of one workload, shared by all copies of its iterations in a question.

    `is_stable` tells whether a tensor keeps its elements while the workload runs; elements of other tensors are never assumed equal.
    `law` returns what holds for two elements of one tensor, in addition to equal indices giving equal elements; None for nothing.
    """

    def __init__(self, is_stable: Callable[[TensorRef], bool] = lambda tensor: True,
                 law: Callable[[Application, Application], System | None] = lambda first, second: None) -> None:
        self.is_stable = is_stable
        self.law = law
        self.applications: dict[TensorRef, list[Application]] = {}
        self._products: list[tuple[LinExpr, LinExpr, Variable]] = []
        self._made: dict[Hashable, Variable] = {}

    def scope(self, bound: Mapping[s.Scalar, LinExpr]) -> IterationScope:
        """Return the translator of one copy's expressions. `bound`: the expressions of leaves that belong to the copy.

        Unbound loop variables, symbols, extents and strides are the same in all copies; a value that belongs to a task has a new variable
        each time.
        """
        return IterationScope(self, bound)

    def made(self, key: Hashable, kind: VarKind, name: Callable[[], str]) -> tuple[Variable, bool]:
        """Return the variable of a key, and whether the variable is new; the caller adds the facts of a new variable."""
        existing = self._made.get(key)
        if existing is not None:
            return existing, False
        new = self._made[key] = Variable(name(), kind)
        return new, True

    def element(self, tensor: TensorRef, index: tuple[LinExpr, ...]) -> LinExpr:
        """Return the element of a tensor at an index."""
        def name() -> str:
            return f"{tensor.shown}[{', '.join(map(str, index))}]"

        if not self.is_stable(tensor):
            return LinExpr.of(_ranged(Variable(name(), VarKind.OPAQUE), tensor.dtype))
        variable, is_new = self.made((tensor, index), VarKind.ELEMENT, name)
        if is_new:
            this = Application(_ranged(variable, tensor.dtype), tensor, index)
            others = self.applications.setdefault(tensor, [])
            for other in others:
                facts = same_where_equal(this.value, index, other.value, other.index)
                law = self.law(other, this)
                variable.together.append((other.variable, facts.include(law) if law is not None else facts))
            others.append(this)
        return LinExpr.of(variable)

    def product(self, left: LinExpr, right: LinExpr) -> LinExpr:
        """Return the product of two expressions."""
        if left.is_known or right.is_known:
            return right * left.constant if left.is_known else left * right.constant
        # (u·a + c)·(v·b + d) = u·v·(a·b) + …, so that (a + 1)·b and a·b share the variable of a·b
        (first, u), (second, v) = _primitive(left), _primitive(right)
        return self._primitive_product(first, second) * (u * v) + first * (u * right.constant) + right * left.constant

    def _primitive_product(self, left: LinExpr, right: LinExpr) -> LinExpr:
        variable, is_new = self.made((Op.MUL, frozenset((left, right))), VarKind.OPAQUE, lambda: f"({left})*({right})")
        value = LinExpr.of(variable)
        if is_new:
            variable.facts.include(product_facts(left, right, value))
            variable.meaning = Result(Op.MUL, left, right, value)
            for first, second, other in self._products:
                shared = left if left in (first, second) else right if right in (first, second) else None
                if shared is not None:   # a·b - a·c is the product of a and b - c
                    mine, theirs = right if shared is left else left, second if first == shared else first
                    variable.together.append((other, product_facts(shared, mine - theirs, value - LinExpr.of(other))))
            self._products.append((left, right, variable))
        return value

    def quotient(self, expr: LinExpr, divisor: int) -> LinExpr:
        """Return expr // divisor, rounded down; 0 where the divisor is 0."""
        if divisor < 0:
            return self.quotient(-expr, -divisor)
        if divisor == 0:
            return LinExpr.known(0)
        whole = LinExpr({key: c // divisor for key, c in expr.terms.items() if c // divisor}, expr.constant // divisor)
        rest = expr - whole * divisor
        if rest.is_known:
            return whole
        variable, is_new = self.made((Op.FLOORDIV, rest, divisor), VarKind.DEFINED, lambda: f"({rest})//{divisor}")
        if is_new:
            variable.facts.within(rest - LinExpr.of(variable, divisor), 0, divisor)
        return whole + LinExpr.of(variable)

    def extreme(self, op: Op, left: LinExpr, right: LinExpr) -> LinExpr:
        """Return the minimum or maximum of two expressions."""
        apart = left - right
        if apart.is_known:
            return left if (apart.constant <= 0) == (op is Op.MIN) else right
        variable, is_new = self.made((op, frozenset((left, right))), VarKind.DEFINED, lambda: f"{op.value}({left}, {right})")
        if is_new:
            variable.facts.include(extreme_facts(op is Op.MIN, left, right, LinExpr.of(variable)))
        return LinExpr.of(variable)

    def division(self, op: Op, left: LinExpr, right: LinExpr) -> LinExpr:
        """Return left // right or left % right where right is not constant."""
        variable, is_new = self.made((op, left, right), VarKind.OPAQUE, lambda: f"({left}) {op.value} ({right})")
        value = LinExpr.of(variable)
        if is_new:
            variable.facts.include(quotient_facts(op is Op.MOD, left, right, value))
            variable.meaning = Result(op, left, right, value)
        return value


class IterationScope:
    """Translates the expressions of one copy of the workload's iterations."""

    def __init__(self, translator: Translator, bound: Mapping[s.Scalar, LinExpr]) -> None:
        self.translator = translator
        self.bound = bound

    def linear(self, node: s.Scalar) -> LinExpr:
        """Return an integer expression or a condition (1 or 0) as a linear expression."""
        return self._opaque(node) if _is_float(node) else self._whole(node)

    def _whole(self, node: s.Scalar) -> LinExpr:
        """Return an expression that is not a float (hence has no float operand); recursion depth is the nesting of sums and products."""
        match node:
            case Const(value):
                return LinExpr.known(int(value))
            case Binary(op, lhs, rhs):
                if op in s.COMPARISONS:
                    return self._truth(op, lhs, rhs)
                return self._combined(node, self._whole(lhs), self._whole(rhs))
            case Unary(op, value):
                inner = self._whole(value)
                return -inner if op is Op.NEG else (1 if scalar_dtype(value).is_bool else -1) - inner
            case Select(condition, then, other):
                left, right, when = self._whole(then), self._whole(other), self.linear(condition)
                variable, is_new = self.translator.made((Select, when, left, right), VarKind.DEFINED, lambda: print_scalar(node))
                if is_new:
                    chosen = LinExpr.of(variable)
                    variable.facts.either(self.condition(condition).equal(chosen, left),
                                          self.condition(condition, False).equal(chosen, right))
                return LinExpr.of(variable)
            case _:
                bound_expr = self.bound.get(node)
                return self._leaf(node) if bound_expr is None else bound_expr

    def condition(self, node: s.Scalar, holds: bool = True) -> System:
        """Return the constraint that a condition is true (`holds`) or false."""
        match node:
            case Const(value):
                return System() if bool(value) == holds else System().either()
            case Unary(Op.NOT, value) if scalar_dtype(value).is_bool:
                return self.condition(value, not holds)
            case Binary(Op.AND | Op.OR as op, lhs, rhs) if scalar_dtype(node).is_bool:
                left, right = self.condition(lhs, holds), self.condition(rhs, holds)
                return left.include(right) if (op is Op.AND) == holds else System().either(left, right)
            case Binary(op, lhs, rhs) if op in s.COMPARISONS and not (_is_float(lhs) or _is_float(rhs)):
                return self._compare(op if holds else _OPPOSITE[op], lhs, rhs)
            case Select(condition, then, other) if scalar_dtype(node).is_bool:
                return System().either(self.condition(condition).include(self.condition(then, holds)),
                                       self.condition(condition, False).include(self.condition(other, holds)))
            case _:
                number = self.linear(node)
                if scalar_dtype(node).is_bool or not holds:
                    return System().equal(number, int(holds))
                return System().differ(number, 0)

    def not_above(self, lhs: s.Scalar, rhs: s.Scalar, gap: int = 0) -> System:
        """Return the constraint lhs + gap <= rhs; min, max and where on either side need no variable."""
        match rhs, lhs:
            case (Binary(Op.MIN, first, second), _) if scalar_dtype(rhs).is_integer:
                return self.not_above(lhs, first, gap).include(self.not_above(lhs, second, gap))
            case (_, Binary(Op.MAX, first, second)) if scalar_dtype(lhs).is_integer:
                return self.not_above(first, rhs, gap).include(self.not_above(second, rhs, gap))
            case (Binary(Op.MAX, first, second), _) if scalar_dtype(rhs).is_integer:
                return System().either(self.not_above(lhs, first, gap), self.not_above(lhs, second, gap))
            case (_, Binary(Op.MIN, first, second)) if scalar_dtype(lhs).is_integer:
                return System().either(self.not_above(first, rhs, gap), self.not_above(second, rhs, gap))
            case _:
                return System().at_least(self.linear(rhs) - self.linear(lhs), gap)

    def _compare(self, op: Op, lhs: s.Scalar, rhs: s.Scalar) -> System:
        match op:
            case Op.LT | Op.LE:
                return self.not_above(lhs, rhs, int(op is Op.LT))
            case Op.GT | Op.GE:
                return self.not_above(rhs, lhs, int(op is Op.GT))
            case Op.EQ:
                return System().equal(self.linear(lhs), self.linear(rhs))
            case _:
                return System().differ(self.linear(lhs), self.linear(rhs))

    def _truth(self, op: Op, lhs: s.Scalar, rhs: s.Scalar) -> LinExpr:
        """Return a comparison as a variable that is 1 or 0."""
        node = Binary(op, lhs, rhs)
        if _is_float(lhs) or _is_float(rhs):
            return self._opaque(node)
        variable, is_new = self.translator.made((op, self.linear(lhs), self.linear(rhs)), VarKind.DEFINED, lambda: print_scalar(node))
        value = LinExpr.of(variable)
        if is_new:
            variable.facts.either(self.condition(node).equal(value, 1), self.condition(node, False).equal(value, 0))
        return value

    def _combined(self, node: Binary, left: LinExpr, right: LinExpr) -> LinExpr:
        translator = self.translator
        match node.op:
            case Op.ADD:
                return left + right
            case Op.SUB:
                return left - right
            case Op.MUL:
                return translator.product(left, right)
            case Op.MIN | Op.MAX as op:
                return translator.extreme(op, left, right)
            case Op.FLOORDIV | Op.MOD as op if not right.is_known:
                return translator.division(op, left, right)
            case Op.FLOORDIV:
                return translator.quotient(left, right.constant)
            case Op.MOD:
                divisor = right.constant
                return left - translator.quotient(left, divisor) * divisor if divisor else LinExpr.known(0)
            case Op.AND | Op.OR as op if scalar_dtype(node).is_bool:
                return translator.extreme(Op.MIN if op is Op.AND else Op.MAX, left, right)
            case Op.AND if _is_mask(right):
                return left - translator.quotient(left, right.constant + 1) * (right.constant + 1)
            case Op.AND if _is_mask(left):
                return right - translator.quotient(right, left.constant + 1) * (left.constant + 1)
            case op:
                return self._opaque(node, Result(op, left, right, LinExpr.known(0)))

    def _leaf(self, node: s.Scalar) -> LinExpr:
        translator = self.translator
        match node:
            case s.Var() | s.SymbolRef() | s.DimOf() | s.StrideOf():
                variable, is_new = translator.made(node, VarKind.FREE, lambda: print_scalar(node))
                if is_new and isinstance(node, s.SymbolRef):
                    _ranged(variable, node.dtype)
                elif is_new and isinstance(node, s.DimOf):
                    variable.facts.at_least(LinExpr.of(variable))
                return LinExpr.of(variable)
            case Element(tensor, index):
                return translator.element(tensor, tuple([self.linear(inner) for inner in index]))
            case _:
                return self._opaque(node)

    def _opaque(self, node: s.Scalar, meaning: Result | None = None) -> LinExpr:
        variable, is_new = self.translator.made(self._sameness(node), VarKind.OPAQUE, lambda: print_scalar(node))
        value = LinExpr.of(variable)
        if is_new:
            if meaning is not None:
                variable.meaning = Result(meaning.op, meaning.left, meaning.right, value)
            match node:
                case s.TaskIndex():
                    variable.facts.at_least(value)
                case Binary(Op.HASHMOD, _, Const(int() as modulus)) if modulus > 0:
                    variable.facts.within(value, 0, modulus)
                case _ if scalar_dtype(node).is_bool:
                    variable.facts.within(value, 0, 2)
        return value

    def _sameness(self, node: s.Scalar) -> Hashable:
        """Return a key that is equal only for expressions with certainly equal values."""
        match node:
            case Unary() | Binary() | Select():
                kind = node.op if isinstance(node, Unary | Binary) else Select
                return (kind, *[self._sameness(child) if _is_float(child) else self.linear(child)
                         for child in s.children(node)])
            case Const() | s.SymbolRef():
                return node
            case Element(tensor, index) if self.translator.is_stable(tensor):
                return (tensor, tuple([self.linear(inner) for inner in index]))
            case _:
                return object()


def _is_float(node: s.Scalar) -> bool:
    """Tell whether a run computes a number as a float: as `scalar_dtype`, without the types of integer operands."""
    match node:
        case Const(value):
            return isinstance(value, float)
        case Binary(op, lhs, rhs):
            if op is Op.ADD or op is Op.SUB or op is Op.MUL:
                return _is_float(lhs) or _is_float(rhs)
            return scalar_dtype(node).is_float
        case s.Var() | s.DimOf():
            return False
        case _:
            return scalar_dtype(node).is_float


def _primitive(expr: LinExpr) -> tuple[LinExpr, int]:
    """Return (p, c) with expr = c·p + constant, where the coefficients of p have no common factor."""
    factor = gcd(*expr.terms.values())
    if next(iter(expr.terms.values())) < 0:
        factor = -factor
    return LinExpr({key: c // factor for key, c in expr.terms.items()}), factor


def _is_mask(expr: LinExpr) -> bool:
    """Tell whether an expression is a constant 2^k - 1, so that & with the constant is a remainder."""
    return expr.is_known and expr.constant >= 0 and expr.constant & (expr.constant + 1) == 0


def _ranged(variable: Variable, dtype: DType | None) -> Variable:
    """Add the range that a dtype implies. u64 implies none: a run reads values above 2^63 as negative."""
    value = LinExpr.of(variable)
    if dtype is not None and dtype.is_bool:
        variable.facts.within(value, 0, 2)
    elif dtype is not None and dtype.family is Family.UINT and not dtype.exceeds_i64:
        variable.facts.at_least(value)
    return variable
