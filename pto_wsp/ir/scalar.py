"""Define scalar expressions: integers, floats and conditions known only at run time, as plain frozen values.

Scalars index views, bound loops, choose workers and price tasks. Users handle `symbolic.Symbolic`, which wraps a node; nodes compare by
structure. Integers have 64 bits and wrap; // and % floor; integer division by zero gives 0. Operands are taken as numbers; the result is
signed unless `is_unsigned` says otherwise. `apply_unary` and `apply_binary` are the one definition that folding, the interpreter and C
share.

>>> apply_binary(Op.FLOORDIV, -7, 2)
-4
>>> print_scalar(add(Var("b", 0), Const(1)))
'b + 1'
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import ClassVar, TypeAlias, assert_never, cast

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import TensorRef
from pto_wsp.values import Derived, dataclass

Number: TypeAlias = int | float | bool


class Op(Enum):
    """An operation on one or two scalars; the value is its printed form."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    MIN = "min"
    MAX = "max"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "&"
    OR = "|"
    NOT = "~"
    NEG = "neg"
    HASHMOD = "hashmod"   # FNV-1a-64 of lhs, mod rhs (both unsigned)

    __hash__ = object.__hash__      # expressions are hashed with their operations

    def __repr__(self) -> str:
        return f"Op.{self.name}"


COMPARISONS = frozenset({Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE})
LOGICAL = frozenset({Op.AND, Op.OR, Op.NOT})


def wrap_i64(value: int) -> int:
    """Return `value` wrapped to a 64-bit signed integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def apply_unary(op: Op, value: Number) -> Number:
    """Return the result of `op` on one number."""
    if op is Op.NEG:
        return -value if isinstance(value, float) else wrap_i64(-int(value))
    if op is Op.NOT:
        return (not value) if isinstance(value, bool) else wrap_i64(~int(value))
    raise ValueError(op)


def apply_binary(op: Op, lhs: Number, rhs: Number) -> Number:
    """Return the result of `op` on two numbers: 64-bit integers unless one is a float."""
    if op in COMPARISONS:
        return bool(_COMPARE[op](lhs, rhs))
    if op in (Op.AND, Op.OR):
        both_bool = isinstance(lhs, bool) and isinstance(rhs, bool)
        result = int(lhs) & int(rhs) if op is Op.AND else int(lhs) | int(rhs)
        return bool(result) if both_bool else wrap_i64(result)
    if isinstance(lhs, float) or isinstance(rhs, float) or op is Op.DIV:
        return _float_binary(op, float(lhs), float(rhs))
    left, right = int(lhs), int(rhs)
    if op is Op.HASHMOD:
        return wrap_i64(fnv1a64(left) % right) if right else 0
    if op in (Op.FLOORDIV, Op.MOD):
        if right == 0:
            return 0
        return wrap_i64(left // right if op is Op.FLOORDIV else left % right)
    return wrap_i64(int(_INTEGER[op](left, right)))


def fnv1a64(value: int) -> int:
    """Return the FNV-1a hash of the 8 little-endian bytes of a 64-bit integer (Fowler, Noll, Vo; RFC 9923)."""
    state = 0xCBF29CE484222325
    for byte in (value % (1 << 64)).to_bytes(8, "little"):
        state = (state ^ byte) * 0x100000001B3 % (1 << 64)
    return state


def _float_binary(op: Op, lhs: float, rhs: float) -> float:
    if op in (Op.DIV, Op.FLOORDIV, Op.MOD):
        if rhs == 0.0:
            if op is Op.MOD:
                return math.nan
            return math.nan if lhs == 0.0 or math.isnan(lhs) else math.copysign(math.inf, lhs) * math.copysign(1.0, rhs)
        return lhs / rhs if op is Op.DIV else lhs // rhs if op is Op.FLOORDIV else lhs % rhs
    if op in (Op.MIN, Op.MAX) and (math.isnan(lhs) or math.isnan(rhs)):
        return math.nan
    return float(_INTEGER[op](lhs, rhs))


_COMPARE: Mapping[Op, Callable[[Number, Number], bool]] = {
    Op.EQ: operator.eq, Op.NE: operator.ne, Op.LT: operator.lt, Op.LE: operator.le, Op.GT: operator.gt, Op.GE: operator.ge,
}
_INTEGER: Mapping[Op, Callable[..., int | float]] = {
    Op.ADD: operator.add, Op.SUB: operator.sub, Op.MUL: operator.mul, Op.MIN: min, Op.MAX: max,
}


# -- nodes -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Const:
    """A number known when the program is built."""

    value: Number


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable: `name` is the user's, `id` is unique among the loops of one workload or kernel."""

    name: str
    id: int


@dataclass(frozen=True, slots=True)
class AxisName:
    """A loop variable given by name, as in schedule keys; resolved to a `Var` at compile time.

    `default`: the value if no surrounding loop has that name; None: such a loop must exist.
    """

    name: str
    default: Scalar | None = None


@dataclass(frozen=True, slots=True)
class BracketIndex:
    """The k-th bracket index of a task, in schedule keys (`t.params[k]`)."""

    position: int


@dataclass(frozen=True, slots=True)
class KernelIs:
    """Whether a task's kernel has that name, in schedule keys (`t.kernel == "matmul"`); resolved at compile time."""

    name: str


@dataclass(frozen=True, slots=True)
class TaskIndex:
    """The number of tasks of the run submitted before this task."""


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """The entry of the plan's calendar for the task being made: its executor (column 0) or its position there (column 1)."""

    column: int


@dataclass(frozen=True, slots=True)
class ReplicaIndex:
    """The replica of the process that evaluates this node, from 0."""


@dataclass(frozen=True, slots=True)
class SymbolRef:
    """A run-time value that the user binds by name. `default`: the initial value of an axis of known size.

    `dtype` None: determined by its uses, an integer unless it only feeds float parameters.
    """

    name: str
    id: int
    dtype: DType | None = None
    default: int | None = None


@dataclass(frozen=True, slots=True)
class ParamScalar:
    """A kernel's Scalar parameter."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class ItemRef:
    """An element of a tile that a kernel has read as a scalar; `name` is the user's, `id` is unique in the kernel."""

    name: str
    id: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class ParamExtent:
    """The number of valid rows (dim 0) or columns (dim 1) of a kernel's parameter."""

    name: str
    dim: int


@dataclass(frozen=True, slots=True)
class DimOf:
    """The run-time extent of a tensor's dimension."""

    tensor: TensorRef
    dim: int


@dataclass(frozen=True, slots=True)
class StrideOf:
    """The run-time stride of a tensor's dimension, in elements."""

    tensor: TensorRef
    dim: int


class _OfNode(Derived):
    """Base of nodes with operands: keeps the node's hash, its dtype, and the ids of the arrays whose elements the node reads.

    Expressions share parts, and each part is looked at once.
    """

    __slots__ = ("elements", "hashed", "kind")
    __match_args__: ClassVar[tuple[str, ...]]
    elements: frozenset[int]
    hashed: int
    kind: DType

    def __hash__(self) -> int:
        return self.hashed

    def _find_hashed(self) -> int:
        return hash(tuple([getattr(self, name) for name in self.__match_args__]))

    def _find_elements(self) -> frozenset[int]:
        return elements_in(children(cast(Scalar, self)))

    def _find_kind(self) -> DType:
        return _kind_of(cast(Scalar, self))


@dataclass(frozen=True, slots=True)
class Element(_OfNode):
    """One element of an integer, bool or float tensor, read when tasks are made."""

    tensor: TensorRef
    index: tuple[Scalar, ...]
    __hash__ = _OfNode.__hash__

    def _find_elements(self) -> frozenset[int]:
        return elements_in(self.index) | {self.tensor.id}


@dataclass(frozen=True, slots=True)
class SlotValue:
    """The current value of slot number `slot` of the orchestrator; 0 before it is set."""

    slot: int


@dataclass(frozen=True, slots=True)
class Unary(_OfNode):
    """`op` on one scalar."""

    op: Op
    value: Scalar
    __hash__ = _OfNode.__hash__


@dataclass(frozen=True, slots=True)
class Binary(_OfNode):
    """`op` on two scalars."""

    op: Op
    lhs: Scalar
    rhs: Scalar
    __hash__ = _OfNode.__hash__


@dataclass(frozen=True, slots=True)
class Select(_OfNode):
    """`then` if `condition` is true, otherwise `other`."""

    condition: Scalar
    then: Scalar
    other: Scalar
    __hash__ = _OfNode.__hash__


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of `body` over `var` in range(start, stop, step): the cost of a loop whose body depends on its variable."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    body: Scalar


Scalar: TypeAlias = (Const | Var | AxisName | BracketIndex | KernelIs | TaskIndex | CalendarEntry | ReplicaIndex | SymbolRef
                     | ParamScalar | ItemRef | ParamExtent | DimOf | StrideOf | Element | SlotValue | Unary | Binary | Select | Sum)


# -- construction, with simplifications that keep printed expressions close to the user's ------------------------------

def binary(op: Op, lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return `lhs op rhs`, folded if both are constants or one is neutral."""
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        return Const(apply_binary(op, lhs.value, rhs.value))
    if op in COMPARISONS or op in LOGICAL or not (scalar_dtype(lhs) is _I64 is scalar_dtype(rhs)):
        return Binary(op, lhs, rhs)   # floats may be NaN or fractional, and bools become integers in arithmetic
    if (op in (Op.ADD, Op.SUB) and _is(rhs, 0)) or (op in (Op.MUL, Op.FLOORDIV) and _is(rhs, 1)):
        return lhs
    if (op is Op.ADD and _is(lhs, 0)) or (op is Op.MUL and _is(lhs, 1)):
        return rhs
    if (op is Op.MUL and (_is(lhs, 0) or _is(rhs, 0))) or (op is Op.SUB and lhs == rhs):
        return Const(0)
    if op in (Op.MIN, Op.MAX) and lhs == rhs:
        return lhs
    return _regroup(op, lhs, rhs) if op in (Op.ADD, Op.SUB) else Binary(op, lhs, rhs)


def _regroup(op: Op, lhs: Scalar, rhs: Scalar) -> Scalar:
    """Fold (a + 1) + 2 → a + 3, and (a + 16) - a → 16, which keeps slice extents constant."""
    left, left_const = _split_const(lhs)
    right, right_const = _split_const(rhs)
    offset = wrap_i64(left_const + right_const if op is Op.ADD else left_const - right_const)
    if right is None:
        base: Scalar | None = left
    elif left is None:
        base = right if op is Op.ADD else Unary(Op.NEG, right)
    elif op is Op.SUB and left == right:
        base = None
    elif op is Op.SUB and isinstance(left, Binary) and left.op is Op.ADD and right in (left.lhs, left.rhs):   # (a + b) - a → b
        base = left.rhs if left.lhs == right else left.lhs
    else:
        base = Binary(op, left, right)
    if base is None:
        return Const(offset)
    if offset == 0:
        return base
    if offset > 0 or offset == -(1 << 63):   # its negation overflows
        return Binary(Op.ADD, base, Const(offset))
    return Binary(Op.SUB, base, Const(-offset))


def _split_const(node: Scalar) -> tuple[Scalar | None, int]:
    match node:
        case Const(value):
            return None, int(value)
        case Binary(Op.ADD, base, Const(value)) if scalar_dtype(base) is _I64:
            return base, int(value)
        case Binary(Op.SUB, base, Const(value)) if scalar_dtype(base) is _I64:
            return base, -int(value)
        case Binary(Op.MUL, Binary(Op.ADD, base, Const(inner)), Const(factor)) if scalar_dtype(base) is _I64:
            return binary(Op.MUL, base, Const(factor)), int(inner) * int(factor)   # (i + 1) * 16 → i * 16 + 16
        case _:
            return node, 0


def add(lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return lhs + rhs."""
    return binary(Op.ADD, lhs, rhs)


def sub(lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return lhs - rhs."""
    return binary(Op.SUB, lhs, rhs)


def mul(lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return lhs * rhs."""
    return binary(Op.MUL, lhs, rhs)


def minimum(lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return min(lhs, rhs)."""
    return binary(Op.MIN, lhs, rhs)


def maximum(lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return max(lhs, rhs)."""
    return binary(Op.MAX, lhs, rhs)


def ceil_div(lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return lhs / rhs rounded up, as -(-lhs // rhs)."""
    if isinstance(rhs, Const) and isinstance(rhs.value, int) and rhs.value > 0 and scalar_dtype(lhs).is_integer:
        return binary(Op.FLOORDIV, add(lhs, Const(rhs.value - 1)), rhs)
    return unary(Op.NEG, binary(Op.FLOORDIV, unary(Op.NEG, lhs), rhs))


def unary(op: Op, value: Scalar) -> Scalar:
    """Return `op value`, folded if constant."""
    if isinstance(value, Const):
        return Const(apply_unary(op, value.value))
    return Unary(op, value)


def select(condition: Scalar, then: Scalar, other: Scalar) -> Scalar:
    """Return `then` if `condition` is true, otherwise `other`; folded if the condition is constant."""
    if isinstance(condition, Const) and scalar_dtype(then) is scalar_dtype(other):
        return then if condition.value else other
    return Select(condition, then, other)


def _is(node: Scalar, value: int) -> bool:
    return isinstance(node, Const) and type(node.value) is int and node.value == value


# -- evaluation --------------------------------------------------------------------------------------------------------

def evaluate(node: Scalar, leaf: Callable[[Scalar], Number], on_summand: Callable[[], None] = lambda: None) -> Number:
    """Return the value of `node`; `leaf` evaluates all nodes except constants and operations (including `Element`).

    `on_summand` is called for each summand of a sum; it may raise to end a long sum.
    """
    match node:
        case Const(value):
            return value
        case Unary(op, value):
            return apply_unary(op, evaluate(value, leaf, on_summand))
        case Binary(op, lhs, rhs):
            return _held(node, apply_binary(op, evaluate(lhs, leaf, on_summand), evaluate(rhs, leaf, on_summand)))
        case Select(condition, then, other):
            chosen = _as_kind(scalar_dtype(node), evaluate(then if evaluate(condition, leaf, on_summand) else other, leaf, on_summand))
            return _held(node, wrap_i64(chosen)) if type(chosen) is int else chosen
        case Sum(var, start, stop, step, body):
            total: Number = 0
            for index in range(*(int(evaluate(bound, leaf, on_summand)) for bound in (start, stop, step))):
                on_summand()
                here = Const(index)
                total += evaluate(body, lambda inner, here=here: here.value if inner == var else leaf(inner), on_summand)  # type: ignore[misc]
            return total
        case _:
            return leaf(node)


def _held(node: Scalar, value: Number) -> Number:
    """Return a wrapped result as the number it represents: a negative result of an unsigned node is a large positive number."""
    return value % (1 << 64) if type(value) is int and value < 0 and is_unsigned(node) else value


def is_unsigned(node: Scalar) -> bool:
    """Tell whether a 64-bit integer is unsigned: read from U64, or computed from such values and nonnegative constants only.

    Differences, negations and results with a signed operand are signed; except a maximum with one unsigned operand, which is not below it.
    """
    match node:
        case SymbolRef(dtype=dtype) | ParamScalar(dtype=dtype) | ItemRef(dtype=dtype):
            return dtype is not None and dtype.exceeds_i64
        case Element(tensor):
            return tensor.dtype.exceeds_i64
        case Binary(Op.MAX, lhs, rhs) if scalar_dtype(node).is_integer:
            return is_unsigned(lhs) or is_unsigned(rhs)
        case Binary(Op.ADD | Op.MUL | Op.FLOORDIV | Op.MOD | Op.MIN | Op.AND | Op.OR, lhs, rhs) | Select(_, lhs, rhs):
            return _is_unsigned_pair(lhs, rhs)
        case _:
            return False


def _is_unsigned_pair(lhs: Scalar, rhs: Scalar) -> bool:
    left, right = is_unsigned(lhs), is_unsigned(rhs)
    return (left or right) and (left or _is_natural(lhs)) and (right or _is_natural(rhs))


def _is_natural(node: Scalar) -> bool:
    return isinstance(node, Const) and type(node.value) is int and node.value >= 0


def _as_kind(kind: DType, value: Number) -> Number:
    return float(value) if kind.is_float else bool(value) if kind.is_bool else int(value)


_BOOL, _F64, _I64 = DType.BOOL, DType.F64, DType.I64


def scalar_dtype(node: Scalar) -> DType:
    """Return I64, F64 or BOOL: the dtype in which `node` is computed (of a parameter, symbol or item: the class of its dtype)."""
    if node.__class__ is Var:      # most often
        return _I64
    return node.kind if isinstance(node, _OfNode) else _kind_of(node)


def _kind_of(node: Scalar) -> DType:
    match node:
        case Const(value):
            return _BOOL if isinstance(value, bool) else _F64 if isinstance(value, float) else _I64
        case Binary(op, lhs, rhs):
            if op in COMPARISONS:
                return _BOOL
            left, right = scalar_dtype(lhs), scalar_dtype(rhs)
            if op is Op.DIV or left is _F64 or right is _F64:
                return _F64
            return _BOOL if left is right is _BOOL and op in LOGICAL else _I64
        case SymbolRef() | ParamScalar() | ItemRef():
            return _wide(node.dtype or _I64)
        case Element():
            return _wide(node.tensor.dtype)
        case Unary(op, value):
            kind = scalar_dtype(value)
            return _I64 if op is Op.NEG and kind is _BOOL else kind
        case Select(_, then, other):
            left, right = scalar_dtype(then), scalar_dtype(other)
            return left if left is right else _F64 if left is _F64 or right is _F64 else _I64
        case Sum(_, _, _, _, body):
            return scalar_dtype(body)
        case (Var() | AxisName() | BracketIndex() | TaskIndex() | CalendarEntry() | ReplicaIndex() | ParamExtent() | DimOf() | StrideOf()
              | SlotValue()):
            return DType.I64
        case KernelIs():
            return DType.BOOL
        case _:
            assert_never(node)


def _wide(dtype: DType) -> DType:
    return _F64 if dtype.is_float else _BOOL if dtype.is_bool else _I64


# -- traversal ---------------------------------------------------------------------------------------------------------

def children(node: Scalar) -> tuple[Scalar, ...]:
    """Return the direct operands of `node`."""
    match node:
        case Unary(_, value):
            return (value,)
        case Binary(_, lhs, rhs):
            return (lhs, rhs)
        case Select(condition, then, other):
            return (condition, then, other)
        case Element(_, index):
            return index
        case AxisName(_, default) if default is not None:
            return (default,)
        case Sum(_, start, stop, step, body):
            return (start, stop, step, body)
        case _:
            return ()


def elements_in(scalars: Iterable[Scalar]) -> frozenset[int]:
    """Return the ids of the arrays of which scalars read an element."""
    found: frozenset[int] = frozenset()
    for node in scalars:
        if node.__class__ in _WITHOUT_ELEMENTS:      # most
            continue
        if isinstance(node, _OfNode):
            found |= node.elements
        elif isinstance(node, Sum | AxisName):
            found |= elements_in(children(node))
    return found


def elements_of(scalars: Iterable[Scalar]) -> Iterator[Element]:
    """Yield the elements that scalars read."""
    rest: list[Scalar] = [one for one in scalars if type(one) not in _WITHOUT_ELEMENTS]
    while rest:
        node = rest.pop()
        if isinstance(node, Element):
            yield node
        rest.extend([one for one in children(node) if type(one) not in _WITHOUT_ELEMENTS])


_WITHOUT_ELEMENTS = frozenset({Const, Var, SymbolRef})


def leaves(node: Scalar) -> tuple[Scalar, ...]:
    """Return every node of the expression that is neither an operation nor a constant (including an `Element` and its indices)."""
    operands = children(node)
    if not operands:
        return () if isinstance(node, Const) else (node,)
    inner = tuple([leaf for child in operands for leaf in leaves(child)])
    return inner if isinstance(node, Unary | Binary | Select | Sum) else (node, *inner)


def substitute(node: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Return `node` with `change` applied outermost first; None keeps a node and continues with its operands."""
    changed = change(node)
    if changed is not None:
        return changed
    match node:
        case Unary(op, value):
            return unary(op, substitute(value, change))
        case Binary(op, lhs, rhs):
            return binary(op, substitute(lhs, change), substitute(rhs, change))
        case Select(condition, then, other):
            return select(substitute(condition, change), substitute(then, change), substitute(other, change))
        case Element(tensor, index):
            return Element(tensor, tuple(substitute(i, change) for i in index))
        case AxisName(name, default) if default is not None:
            return AxisName(name, substitute(default, change))
        case Sum(var, start, stop, step, body):
            return Sum(var, substitute(start, change), substitute(stop, change), substitute(step, change),
                       substitute(body, change))
        case _:
            return node


LEVEL = {**dict.fromkeys(COMPARISONS, 1), Op.OR: 2, Op.AND: 3, Op.ADD: 4, Op.SUB: 4, Op.MUL: 5, Op.DIV: 5, Op.FLOORDIV: 5,
          Op.MOD: 5}


def print_scalar(node: Scalar, level: int = 0) -> str:
    """Return the expression as source text. `level`: the precedence of the context."""
    match node:
        case Const(value):
            return repr(value)
        case AxisName(name, default) if default is not None:
            return f"get({name!r}, {print_scalar(default)})"
        case SymbolRef(name="", default=int(default)):
            return f"DenseDyn({default})"      # an axis that no workload has named
        case Var(name) | AxisName(name) | SymbolRef(name) | ParamScalar(name) | ItemRef(name):
            return name
        case BracketIndex(position):
            return f"params[{position}]"
        case KernelIs(name):
            return f"(kernel == {name!r})" if level > LEVEL[Op.EQ] else f"kernel == {name!r}"
        case TaskIndex():
            return "task_index"
        case CalendarEntry(column):
            return f"calendar[task_index][{column}]"
        case ReplicaIndex():
            return "replica"
        case SlotValue(slot):
            return f"slot_u64({slot})"
        case ParamExtent(name, dim):
            return f"{name}.shape[{dim}]"
        case DimOf(tensor, dim):
            return f"{tensor.shown}.shape[{dim}]"
        case StrideOf(tensor, dim):
            return f"{tensor.shown}.strides[{dim}]"
        case Element(tensor, index):
            return f"{tensor.shown}[{', '.join(print_scalar(i) for i in index)}]"
        case Unary(Op.NEG, Const()):      # -(5) is an operation, -5 a number
            return f"-({print_scalar(node.value)})"
        case Unary(op, value):
            return f"{'-' if op is Op.NEG else '~'}{print_scalar(value, 6)}"
        case Binary(Op.MIN | Op.MAX | Op.HASHMOD as op, lhs, rhs):
            return f"{op.value}({print_scalar(lhs)}, {print_scalar(rhs)})"
        case Binary(op, lhs, rhs):
            left = LEVEL[op] if op not in COMPARISONS else LEVEL[op] + 1
            text = f"{print_scalar(lhs, left)} {op.value} {print_scalar(rhs, LEVEL[op] + 1)}"
            return f"({text})" if LEVEL[op] < level else text
        case Select(condition, then, other):
            return f"where({print_scalar(condition)}, {print_scalar(then)}, {print_scalar(other)})"
        case Sum(var, start, stop, step, body):
            bounds = ", ".join(print_scalar(bound) for bound in (start, stop, step))
            return f"sum({print_scalar(body)} for {var.name} in range({bounds}))"
        case _:
            assert_never(node)
