"""Define the user's handle of unknown numbers: `Symbolic` wraps a scalar expression and has Python's operators.

A symbolic value never converts to a Python number, bool or string silently: each such conversion is an error at the user's line.

`Extent` is a tensor's extent as a traced body reads it: a Python number that reports its use to the trace, because a body that computes
with
`X.shape[0]` is specific to that number. Unpacking alone is no use: `rows, cols = X.shape`. Python's `range(rows)` reads an unpacked extent
without calling it, and is not reported; `range(X.shape[0])` is.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeAlias

import numpy as np

from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import (
    ArgumentKindError,
    ExpressionSizeError,
    NumberError,
    SymbolicControlError,
    UnknownNameError,
    ValueUseError,
    unreachable,
)
from pto_wsp.ir import scalar
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType, DTypeLike
from pto_wsp.ir.scalar import Op, print_scalar
from pto_wsp.source import here

DEEPEST = 128         # nested operations: every traversal of an expression recurses
LARGEST = 1 << 15     # operations in total, counted with repetition: x = x + x doubles them
_LEAF = (1, 1)
_LONGEST_SHOWN = 200     # characters of an expression in a message


@user_calls("scalar", leave_out=("__init__",))
class Symbolic:
    """A scalar known only at run time: a loop variable, a Symbol, a tensor's element, or arithmetic on these."""

    __slots__ = ("holds", "node", "weight")

    def __init__(self, node: scalar.Scalar, holds: tuple[object, ...] = (), weight: tuple[int, int] | None = None) -> None:
        self.node = node
        self.holds = holds   # the tensors it reads, kept alive: the node has their ids only
        self.weight = weight or _weighed(node)   # (depth, number) of its operations, or upper bounds

    @property
    def position(self) -> Symbolic:
        """Where a column of a sparse row stands in the indices; any other scalar has none."""
        raise ValueUseError(f"`{print_scalar(self.node)}` has no position", here(),
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
        return _made(scalar.unary(Op.NEG, self.node), self)

    def __pos__(self) -> Symbolic:
        return self

    def __invert__(self) -> Symbolic:
        return _made(scalar.unary(Op.NOT, self.node), self)

    def __abs__(self) -> Symbolic:
        return self.max(-self)

    def __divmod__(self, other: ScalarLike) -> tuple[Symbolic, Symbolic]:
        return self // other, self % other

    def __rdivmod__(self, other: ScalarLike) -> tuple[Symbolic, Symbolic]:
        return _binary(Op.FLOORDIV, other, self), _binary(Op.MOD, other, self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> Symbolic:
        """Return the result of a NumPy ufunc on scalars: np.minimum(n, 3) is n.min(3), np.int64(2) * n is 2 * n.

        Raises: T206 for a ufunc that scalars do not have, and for its methods and options.
        """
        if any(hasattr(type(value), "__pto_tile__") for value in inputs):   # the tile's own method applies
            return NotImplemented  # type: ignore[no-any-return]
        if method == "__call__" and not options:
            if ufunc in _UFUNCS:
                return _binary(_UFUNCS[ufunc], *inputs)
            if ufunc in (np.negative, np.absolute, np.invert):
                return -self if ufunc is np.negative else abs(self) if ufunc is np.absolute else ~self
        raise ValueUseError(f"scalars have no np.{ufunc.__name__}", here(), expected="+ - * / // % & | ~, comparisons, abs, np.minimum "
                            "and np.maximum", found=_shown(self.node), help="compute it in a kernel, on tiles")

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
        if hasattr(type(other), "__pto_tile__"):   # the tile's own operator applies
            return NotImplemented
        raise ValueUseError("scalars have no such operator", here(), expected="+ - * / // % & | ~ and comparisons",
                            help="i * i for a square; i * 2 and i // 2 for shifts")

    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __xor__ = __rxor__ = _no_operator
    __matmul__ = __rmatmul__ = _no_operator

    def where(self, then: ScalarLike, other: ScalarLike) -> Symbolic:
        """Return `then` if this condition is true, otherwise `other`."""
        return _made(scalar.select(self.node, as_scalar(then), as_scalar(other)), self, then, other)

    def min(self, other: ScalarLike) -> Symbolic:
        """Return the smaller of this and `other`."""
        return _binary(Op.MIN, self, other)

    def max(self, other: ScalarLike) -> Symbolic:
        """Return the larger of this and `other`."""
        return _binary(Op.MAX, self, other)

    def ceildiv(self, other: ScalarLike) -> Symbolic:
        """Return this divided by `other`, rounded up."""
        return _made(scalar.ceil_div(self.node, as_scalar(other)), self, other)

    def cast_i64(self) -> Symbolic:
        """Return a whole number wrapped to a signed number of 64 bits; numbers of workloads are signed unless they come from U64."""
        node = self._whole("cast_i64")
        return _made(scalar.Unary(Op.NEG, scalar.Unary(Op.NEG, node)), self) if scalar.is_unsigned(node) else Symbolic(node, self.holds)

    def cast_u64(self) -> Symbolic:
        """Return a whole number that is never negative as it is.

        Raises: T209 for a number that may be negative: signed numbers have no unsigned form.
        """
        node = self._whole("cast_u64")
        natural = isinstance(node, scalar.Var | scalar.AxisName | scalar.Const) or scalar.is_unsigned(node)
        if not natural:
            raise NumberError(f"cast_u64() of a signed number: {_shown(node)}", here(), expected="a loop variable, or numbers of U64",
                              help='Symbol("n", DType.U64) and tensors of U64 are unsigned; leave cast_u64() out where the number is '
                              "never negative")
        return Symbolic(node, self.holds)

    def cast_i32(self) -> Symbolic:
        """Return a whole number as a signed one of 32 bits, which wraps."""
        node = self._whole("cast_i32")
        return (Symbolic(node, self.holds).cast_i64() + (1 << 31)) % (1 << 32) - (1 << 31)

    def cast_u32(self) -> Symbolic:
        """Return a whole number modulo 2**32."""
        return Symbolic(self._whole("cast_u32"), self.holds) % (1 << 32)

    def cast_bool(self) -> Symbolic:
        """Return whether the number is not 0."""
        return self if scalar.scalar_dtype(self.node).is_bool else self != 0

    def _whole(self, what: str) -> scalar.Scalar:
        """Return the node of a whole number; a truth value is 1 or 0.

        Raises: T209 for a float.
        """
        kind = scalar.scalar_dtype(self.node)
        if kind.is_float:
            raise NumberError(f"{what}() of a float: {_shown(self.node)}", here(), expected="a whole number or a truth value",
                              help="a // b floors, and ceildiv(a, b) rounds up: both give whole numbers of whole numbers")
        return scalar.select(self.node, scalar.Const(1), scalar.Const(0)) if kind.is_bool else self.node

    def __repr__(self) -> str:
        return f"{type(self).__name__}({print_scalar(self.node)})"

    def __bool__(self) -> NoReturn:
        _refuse(self, "bool", "if, while, and, or, not, in, min() and max() decide while the body is traced, once for all "
                "iterations; branch with `with P.when(c):` in a workload, `with pto.when(c):` in a kernel, "
                "`with tt.when(c):` in a function on tensors, choose with c.where(a, b), join conditions with &, | and ~, "
                "and take .min() and .max()")

    def __int__(self) -> NoReturn:
        _refuse(self, "int", "the value is known only at run time; use it in arithmetic, indices and loop bounds as it is")

    def __float__(self) -> NoReturn:
        _refuse(self, "float", "the value is known only at run time; use it in arithmetic as it is")

    def __index__(self) -> NoReturn:
        _refuse(self, "index", "Python's range, lists and NumPy arrays need a number now; loop with P(...), pto.range(...) or "
                "tt.loop(...), wrap an array as a Tensor to read its elements, and make tensors of a function by tt.zeros and kin")

    def __hash__(self) -> NoReturn:
        _refuse(self, "hash", "a dict or set needs a value now; wrap the table as a Tensor and index it")

    def __str__(self) -> NoReturn:
        _refuse(self, "str", "print its repr(), or print in the kernel when it runs")

    def __format__(self, spec: str) -> NoReturn:
        _refuse(self, "format", "print its repr() ({x!r}), or print in the kernel when it runs")

    def __iter__(self) -> NoReturn:
        _refuse(self, "iter", "loop over a symbolic extent with P(...) in a workload, pto.range(...) in a kernel, or tt.loop(...) in a "
                "function on tensors")

    def __len__(self) -> NoReturn:
        _refuse(self, "len", "a scalar is one number; a loop's bound and a slice's end take it as it is")

    def __complex__(self) -> NoReturn:
        _refuse(self, "complex", "the value is known only at run time; use it in arithmetic as it is")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        _refuse(self, "array", "NumPy arrays need a number now; wrap the array as a Tensor to read its elements: Tensor(array)[n]; "
                "tt.arange(n) counts in a function on tensors")

    def __array_function__(self, function: object, *_: object) -> NoReturn:
        _refuse(self, f"np.{getattr(function, '__name__', function)}", "c.where(a, b) chooses, n.min(m) and n.max(m) compare")

    def _rounded(self, what: str) -> Symbolic:
        if not scalar.scalar_dtype(self.node).is_integer:
            _refuse(self, what, "a // b floors whole numbers, and ceildiv(a, b) rounds up: both give a whole number")
        return self

    def __round__(self, digits: int | None = None) -> Symbolic:
        return self._rounded("round")

    def __floor__(self) -> Symbolic:
        return self._rounded("floor")

    def __ceil__(self) -> Symbolic:
        return self._rounded("ceil")

    def __trunc__(self) -> Symbolic:
        return self._rounded("trunc")

    def __getitem__(self, item: object) -> NoReturn:
        raise ValueUseError(f"`{_shown(self.node)}` is one number and has no elements", here(), found="an index",
                            help="index the Tensor that it came from with all indices at once: X[b, h]")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise ValueUseError(f"`{_shown(self.node)}` is one number and cannot be called", here())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNameError(f"the scalar `{_shown(self.node)}` has no `{name}`", here(),
                               expected="arithmetic, comparisons, .where(a, b), .min(x), .max(x), .ceildiv(x)")


ScalarLike: TypeAlias = Symbolic | int | float | bool | object


_ADDRESS = re.compile(r"\d{12}")     # an id() in decimal has that many digits


@user_calls()
class Symbol(Symbolic):
    """`Symbol("n")`: a number that each run binds by name. Its dtype follows its use unless given."""

    __slots__ = ("name",)
    _made = 0

    def __init__(self, name: str, dtype: DTypeLike | None = None) -> None:
        named = isinstance(name, str) and name.isidentifier()
        if not named or _ADDRESS.search(name):
            raise ArgumentKindError("a Symbol's name looks like an address, which is another one in each process" if named else
                                    "a Symbol needs a name", here(), expected="a Python identifier, e.g. Symbol(\"n\")", found=repr(name),
                                    help="leave id() out of the name" if named else None)
        known = DType.of(dtype)
        if dtype is not None and known is None:
            raise ArgumentKindError("a Symbol's dtype is a DType", here(), expected="a member of DType", found=repr(dtype))
        Symbol._made += 1
        super().__init__(scalar.SymbolRef(name, Symbol._made, known))
        self.name = name


def as_scalar(value: object) -> scalar.Scalar:
    """Return the node of a symbolic value, a Python or NumPy number, or an object with `__scalar__` (a tensor's element).

    Raises: T205 for anything else, T209 for a number that does not fit 64 bits.
    """
    match value:
        case Symbolic():
            return value.node
        case bool():
            return scalar.Const(value)
        case int():
            if not -(1 << 63) <= value < 1 << 63:
                raise NumberError("a whole number does not fit 64 bits", here(), found=str(value))
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


def _of_size(operation: Callable[[Any, Any], Any]) -> Callable[[Counted, object], Any]:
    return lambda axis, other: operation(axis.size, other)


def _by_size(operation: Callable[[Any, Any], Any]) -> Callable[[Counted, object], Any]:
    return lambda axis, other: operation(other, axis.size)


class Counted:
    """The base of axes: in arithmetic, in a loop's bound and as the end of a slice an axis stands for `size`."""

    __slots__ = ()

    @property
    def size(self) -> int | Symbolic:
        """The number of positions: an int if it never changes, otherwise a scalar."""
        unreachable("an axis without a size")

    def __scalar__(self) -> scalar.Scalar:
        return as_scalar(self.size)

    __add__, __sub__, __mul__ = _of_size(operator.add), _of_size(operator.sub), _of_size(operator.mul)
    __radd__, __rsub__, __rmul__ = _by_size(operator.add), _by_size(operator.sub), _by_size(operator.mul)
    __truediv__, __floordiv__, __mod__ = _of_size(operator.truediv), _of_size(operator.floordiv), _of_size(operator.mod)
    __rtruediv__, __rfloordiv__, __rmod__ = _by_size(operator.truediv), _by_size(operator.floordiv), _by_size(operator.mod)
    __lt__, __le__, __gt__, __ge__ = _of_size(operator.lt), _of_size(operator.le), _of_size(operator.gt), _of_size(operator.ge)


def has_scalar(value: object) -> bool:
    """Tell whether a value provides its scalar by `__scalar__`, as a tensor's element does."""
    return getattr(type(value), "__scalar__", None) is not None


def tensors_read(*values: object) -> tuple[object, ...]:
    """Return the tensors that symbolic values read; a result that holds such a value keeps these tensors alive."""
    return tuple(held for value in values if isinstance(value, Symbolic) for held in value.holds)


def _binary(op: Op, lhs: object, rhs: object) -> Symbolic:
    if hasattr(type(rhs), "__pto_tile__"):   # the tile's own operator applies
        return NotImplemented  # type: ignore[no-any-return]
    return _made(scalar.binary(op, as_scalar(lhs), as_scalar(rhs)), lhs, rhs)


_UFUNCS: Mapping[np.ufunc, Op] = {
    np.add: Op.ADD, np.subtract: Op.SUB, np.multiply: Op.MUL, np.true_divide: Op.DIV, np.floor_divide: Op.FLOORDIV, np.remainder: Op.MOD,
    np.minimum: Op.MIN, np.maximum: Op.MAX, np.bitwise_and: Op.AND, np.bitwise_or: Op.OR, np.equal: Op.EQ, np.not_equal: Op.NE,
    np.less: Op.LT, np.less_equal: Op.LE, np.greater: Op.GT, np.greater_equal: Op.GE,
}


# -- construction within the size limits -------------------------------------------------------------------------------

def _made(node: scalar.Scalar, *operands: object) -> Symbolic:
    """Return the symbolic value of an operation on `operands`.

    Raises: T212 where its operations are too deep in each other, or too many.
    """
    weights = [operand.weight if isinstance(operand, Symbolic) else _LEAF for operand in operands]
    depth, size = 1 + max(depth for depth, _ in weights), 1 + sum(size for _, size in weights)
    if depth <= DEEPEST and size <= LARGEST:
        return Symbolic(node, tensors_read(*operands), (depth, size))
    return Symbolic(_balanced(node), tensors_read(*operands))     # weighed again, because folding may have reduced it


_GROUPED = frozenset({Op.ADD, Op.MUL, Op.MIN, Op.MAX, Op.AND, Op.OR})    # associative on wrapping integers and on truth values


def _balanced(node: scalar.Scalar) -> scalar.Scalar:
    """Return a long chain of one operation as a balanced tree: ((a + b) + c) + d → (a + b) + (c + d). Floats are unchanged."""
    if not isinstance(node, scalar.Binary) or node.op not in _GROUPED or scalar.scalar_dtype(node).is_float:
        return node
    op, todo, parts = node.op, list[scalar.Scalar]((node,)), list[scalar.Scalar]()
    while todo:
        each = todo.pop()
        if isinstance(each, scalar.Binary) and each.op is op:
            todo += [each.rhs, each.lhs]
        else:
            parts.append(each)
    while len(parts) > 1:
        pairs = [scalar.Binary(op, lhs, rhs) for lhs, rhs in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[2 * len(pairs):]]
    return parts[0]


def _weighed(node: scalar.Scalar) -> tuple[int, int]:
    """Return how deep the operations of an expression are in each other, and how many they are, without recursion.

    Raises: T212 where either is too much.
    """
    todo, depth, size = [(node, 1)], 0, 0
    while todo:
        each, level = todo.pop()
        depth, size = max(depth, level), size + 1
        if depth > DEEPEST or size > LARGEST:
            raise ExpressionSizeError("a scalar expression is too large", here(), expected=f"at most {DEEPEST} operations in each other, "
                                      f"and {LARGEST} in all", help="join many parts in pairs, (a & b) & (c & d), or keep them in a "
                                      "Tensor and read its elements")
        todo.extend((child, level + 1) for child in scalar.children(each))
    return depth, size


def _shown(node: scalar.Scalar) -> str:
    text = print_scalar(node)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _refuse(value: Symbolic, what: str, advice: str) -> NoReturn:
    raise SymbolicControlError(f"{what}() of a value known only at run time: {_shown(value.node)}", here(),
                               expected="a number that is known while the body is traced", found=_shown(value.node), help=advice)


def _number_or_symbolic(node: s.Scalar, *operands: object) -> Symbolic | int | float:
    return node.value if isinstance(node, s.Const) else Symbolic(node, tensors_read(*operands))


# -- functions ---------------------------------------------------------------------------------------------------------
@user_call("ceildiv")
def ceildiv(a: object, b: object) -> Symbolic | int | float:
    """Return a / b rounded up, for numbers and scalar expressions; division by zero gives 0."""
    return _number_or_symbolic(s.ceil_div(as_scalar(a), as_scalar(b)), a, b)


@user_call()
def minimum(a: object, b: object) -> Symbolic | int | float:
    """Return the smaller of two numbers or scalar expressions."""
    return _number_or_symbolic(s.minimum(as_scalar(a), as_scalar(b)), a, b)


@user_call()
def maximum(a: object, b: object) -> Symbolic | int | float:
    """Return the larger of two numbers or scalar expressions."""
    return _number_or_symbolic(s.maximum(as_scalar(a), as_scalar(b)), a, b)


@user_call("symbol_u64")
def symbol_u64(name: str) -> Symbol:
    """Return a symbol that each run binds to an integer >= 0."""
    return Symbol(name, DType.U64)


@user_call("symbol_f32")
def symbol_f32(name: str) -> Symbol:
    """Return a symbol that each run binds to a float."""
    return Symbol(name, DType.F32)


# -- extents -----------------------------------------------------------------------------------------------------------
Heard = Callable[[], None]


class Extent(int):
    """An extent that calls `heard` when it is used in arithmetic or a decision."""

    heard: Heard

    @staticmethod
    def of(value: int, heard: Heard) -> Extent:
        """Return a number as an extent."""
        made = Extent(value)
        made.heard = heard
        return made

    __hash__ = int.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return int, (int.__add__(self, 0),)


def _hearing(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def operation(self: Extent, *others: object) -> object:
        self.heard()
        return plain(self, *others)

    operation.__name__ = name
    return operation


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor"):
    setattr(Extent, f"__{_name}__", _hearing(f"__{_name}__"))
    setattr(Extent, f"__r{_name}__", _hearing(f"__r{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", "int", "float", "index", "bool", "round", "ceil", "floor"):
    setattr(Extent, f"__{_name}__", _hearing(f"__{_name}__"))


class Shape(tuple[Any, ...]):
    """A shape of extents; indexing it reports the extent at once."""

    __slots__ = ()

    def __getitem__(self, item: SupportsIndex | slice) -> Any:
        entry = super().__getitem__(item)
        if isinstance(entry, Extent):
            entry.heard()
            return int.__add__(entry, 0)
        return Shape(entry) if isinstance(entry, Sequence) and not isinstance(entry, Shape) else entry
