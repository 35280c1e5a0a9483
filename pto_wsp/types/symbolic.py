"""What a user handles where a number is not known yet: `Symbolic` wraps a scalar expression and carries Python's operators.

A symbolic value never turns into a Python number, bool or string by accident: each such request is an error at the user's line.
"""

from __future__ import annotations

from typing import NoReturn, TypeAlias

from pto_wsp.errors import ArgumentKindError, SymbolicControlError
from pto_wsp.source import here
from pto_wsp.types import scalar
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Op
from pto_wsp.types.scalar_text import print_scalar


class Symbolic:
    """A scalar known only at run time: a loop variable, a Symbol, a tensor's element, or arithmetic on them."""

    __slots__ = ("holds", "node")
    __array_ufunc__ = None   # numpy scalars on the left hand the operation over

    def __init__(self, node: scalar.Scalar, holds: tuple[object, ...] = ()) -> None:
        self.node = node
        self.holds = holds   # the tensors that it reads: the node knows them by id alone

    @property
    def position(self) -> Symbolic:
        """Where a column of a sparse row stands in the indices; any other scalar has none."""
        raise ArgumentKindError(f"`{print_scalar(self.node)}` has no position", here(),
                                expected="the variable of a loop over a sparse row: for e in P.sel(routing[b])",
                                help="the variable of any other loop is its position itself")

    def __add__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.ADD, self, other)

    def __radd__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.ADD, other, self)

    def __sub__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.SUB, self, other)

    def __rsub__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.SUB, other, self)

    def __mul__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.MUL, self, other)

    def __rmul__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.MUL, other, self)

    def __truediv__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.DIV, self, other)

    def __rtruediv__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.DIV, other, self)

    def __floordiv__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.FLOORDIV, self, other)

    def __rfloordiv__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.FLOORDIV, other, self)

    def __mod__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.MOD, self, other)

    def __rmod__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.MOD, other, self)

    def __and__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.AND, self, other)

    def __rand__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.AND, other, self)

    def __or__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.OR, self, other)

    def __ror__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.OR, other, self)

    def __neg__(self) -> Symbolic:
        return Symbolic(scalar.unary(Op.NEG, self.node), self.holds)

    def __pos__(self) -> Symbolic:
        return self

    def __invert__(self) -> Symbolic:
        return Symbolic(scalar.unary(Op.NOT, self.node), self.holds)

    def __eq__(self, other: object) -> Symbolic:  # type: ignore[override]
        return _binary(Op.EQ, self, other)

    def __ne__(self, other: object) -> Symbolic:  # type: ignore[override]
        return _binary(Op.NE, self, other)

    def __lt__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.LT, self, other)

    def __le__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.LE, self, other)

    def __gt__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.GT, self, other)

    def __ge__(self, other: ScalarLike) -> Symbolic:
        return _binary(Op.GE, self, other)

    def _no_operator(self, other: object) -> object:
        if hasattr(type(other), "__pto_tile__"):   # a tile's own operator takes over
            return NotImplemented
        raise ArgumentKindError("scalars have no such operator", here(), expected="+ - * / // % & | ~ and comparisons",
                                help="i * i for a square; i * 2 and i // 2 for shifts")

    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __xor__ = __rxor__ = _no_operator
    __matmul__ = __rmatmul__ = __divmod__ = __rdivmod__ = _no_operator

    def where(self, then: ScalarLike, other: ScalarLike) -> Symbolic:
        """Return `then` where this condition holds, else `other`."""
        return Symbolic(scalar.select(self.node, as_scalar(then), as_scalar(other)), held_by(self, then, other))

    def min(self, other: ScalarLike) -> Symbolic:
        """Return the smaller of this and `other`."""
        return _binary(Op.MIN, self, other)

    def max(self, other: ScalarLike) -> Symbolic:
        """Return the larger of this and `other`."""
        return _binary(Op.MAX, self, other)

    def ceildiv(self, other: ScalarLike) -> Symbolic:
        """Return this divided by `other`, rounded up."""
        return Symbolic(scalar.ceil_div(self.node, as_scalar(other)), held_by(self, other))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({print_scalar(self.node)})"

    def __bool__(self) -> NoReturn:
        _refuse(self, "bool", "if, while, and, or, not, in, min() and max() decide while the body is traced, once for all "
                "iterations; branch with `with P.when(c):` in a workload and `with pto.when(c):` in a kernel, "
                "choose with c.where(a, b), join conditions with &, | and ~, "
                "and take .min() and .max()")

    def __int__(self) -> NoReturn:
        _refuse(self, "int", "the value is known only at run time; use it in arithmetic, indices and loop bounds as it is")

    def __float__(self) -> NoReturn:
        _refuse(self, "float", "the value is known only at run time; use it in arithmetic as it is")

    def __index__(self) -> NoReturn:
        _refuse(self, "index", "Python's range, lists and NumPy arrays need a number now; loop with P(...) or pto.range(...), "
                "and wrap the array as a Tensor to read its elements")

    def __hash__(self) -> NoReturn:
        _refuse(self, "hash", "a dict or set needs a value now; wrap the table as a Tensor and index it")

    def __str__(self) -> NoReturn:
        _refuse(self, "str", "print its repr(), or print in the kernel when it runs")

    def __format__(self, spec: str) -> NoReturn:
        _refuse(self, "format", "print its repr() ({x!r}), or print in the kernel when it runs")

    def __iter__(self) -> NoReturn:
        _refuse(self, "iter", "loop over a symbolic extent with P(...) in a workload or pto.range(...) in a kernel")


ScalarLike: TypeAlias = Symbolic | int | float | bool | object


class Symbol(Symbolic):
    """`Symbol("n")`: a number that each run binds by name. It takes the dtype of its use unless one is given."""

    __slots__ = ("name",)
    _made = 0

    def __init__(self, name: str, dtype: DType | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentKindError("a Symbol needs a name", here(), expected="a Python identifier, e.g. Symbol(\"n\")",
                                    found=repr(name))
        if dtype is not None and not isinstance(dtype, DType):
            raise ArgumentKindError("a Symbol's dtype is a DType", here(), expected="a member of DType", found=repr(dtype))
        Symbol._made += 1
        super().__init__(scalar.SymbolRef(name, Symbol._made, dtype))
        self.name = name


def as_scalar(value: object) -> scalar.Scalar:
    """Return the node of a symbolic value, a Python or NumPy number, or anything with a `__scalar__` (a tensor's element).

    Raises: T205 for anything else.
    """
    match value:
        case Symbolic():
            return value.node
        case bool():
            return scalar.Const(value)
        case int():
            if not -(1 << 63) <= value < 1 << 63:
                raise ArgumentKindError("a whole number does not fit 64 bits", here(), found=str(value))
            return scalar.Const(int(value))
        case float():
            return scalar.Const(float(value))
    if has_scalar(value):
        node: scalar.Scalar = value.__scalar__()  # type: ignore[attr-defined]
        return node
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():   # a NumPy scalar
        return as_scalar(item())
    raise ArgumentKindError("this is not a scalar", here(), expected="a number, a loop variable, a Symbol, a tensor's element, "
                            "or arithmetic on them", found=f"{type(value).__name__}: {value!r:.60}")


def has_scalar(value: object) -> bool:
    """Tell whether a value says itself which scalar it stands for, as a tensor's element does."""
    return getattr(type(value), "__scalar__", None) is not None


def held_by(*values: object) -> tuple[object, ...]:
    """Return the tensors that symbolic values read, so that what is made of them keeps those alive."""
    return tuple(held for value in values if isinstance(value, Symbolic) for held in value.holds)


def _binary(op: Op, lhs: object, rhs: object) -> Symbolic:
    if hasattr(type(rhs), "__pto_tile__"):   # a tile's own operator takes over
        return NotImplemented  # type: ignore[no-any-return]
    return Symbolic(scalar.binary(op, as_scalar(lhs), as_scalar(rhs)), held_by(lhs, rhs))


def _refuse(value: Symbolic, what: str, advice: str) -> NoReturn:
    raise SymbolicControlError(f"{what}() of a value known only at run time: {print_scalar(value.node)}", here(), help=advice)
