"""Scalar expressions: integers, floats and conditions known only at run time, as plain frozen values.

They index views, bound loops, choose workers and price tasks. What a user handles is `symbolic.Symbolic`, which wraps a node;
nodes compare by structure. Integers are 64-bit; // and % floor; integer division by zero gives 0. An operation works on the numbers
that its operands are, and its result is signed unless `is_unsigned` says otherwise: what does not fit wraps.

>>> add(Const(1), Const(2))
Const(value=3)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from pto_wsp.types.dtype import DType
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.scalar_ops import COMPARISONS as COMPARISONS
from pto_wsp.types.scalar_ops import LOGICAL as LOGICAL
from pto_wsp.types.scalar_ops import Number as Number
from pto_wsp.types.scalar_ops import Op as Op
from pto_wsp.types.scalar_ops import apply_binary as apply_binary
from pto_wsp.types.scalar_ops import apply_unary as apply_unary
from pto_wsp.types.scalar_ops import fnv1a64 as fnv1a64
from pto_wsp.types.scalar_ops import wrap_i64 as wrap_i64
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Const:
    """A number known when the program is built."""

    value: Number


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable: `name` is the user's, `id` tells loops of one workload or kernel apart."""

    name: str
    id: int


@dataclass(frozen=True, slots=True)
class AxisName:
    """A loop variable referred to by name, as schedule keys do; resolved to a `Var` at compile.

    `default`: what it is where no loop around has that name; None: it has to be there.
    """

    name: str
    default: Scalar | None = None


@dataclass(frozen=True, slots=True)
class BracketIndex:
    """The k-th bracket index of a task, as schedule keys see it (`t.params[k]`)."""

    position: int


@dataclass(frozen=True, slots=True)
class KernelIs:
    """Whether a task is one of the kernel of that name, as schedule keys ask (`t.kernel == "matmul"`); resolved at compile."""

    name: str


@dataclass(frozen=True, slots=True)
class TaskIndex:
    """How many tasks of the run were submitted before this one."""


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """What the plan's calendar says of the task being made: its executor (column 0) or its position there (column 1)."""

    column: int


@dataclass(frozen=True, slots=True)
class ReplicaIndex:
    """Which replica of its process evaluates this, from 0."""


@dataclass(frozen=True, slots=True)
class SymbolRef:
    """A run-time value that the user binds by name. `default` is what an axis of known size starts with.

    `dtype` None: whatever its use asks for, an integer unless it only feeds float parameters.
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
class ParamExtent:
    """How many rows (dim 0) or columns (dim 1) of a kernel's parameter are valid."""

    name: str
    dim: int


@dataclass(frozen=True, slots=True)
class DimOf:
    """The extent of a tensor's dimension as it is bound at run time."""

    tensor: TensorRef
    dim: int


@dataclass(frozen=True, slots=True)
class StrideOf:
    """The stride of a tensor's dimension as it is bound at run time, in elements."""

    tensor: TensorRef
    dim: int


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an integer, bool or float tensor, read when tasks are made."""

    tensor: TensorRef
    index: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class SlotValue:
    """What slot number `slot` of the orchestrator holds where this is evaluated, 0 before it was set."""

    slot: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`op` of one scalar."""

    op: Op
    value: Scalar


@dataclass(frozen=True, slots=True)
class Binary:
    """`op` of two scalars."""

    op: Op
    lhs: Scalar
    rhs: Scalar


@dataclass(frozen=True, slots=True)
class Select:
    """`then` where `condition` holds, else `other`."""

    condition: Scalar
    then: Scalar
    other: Scalar


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of `body` over `var` in range(start, stop, step): the cost of a loop whose body depends on its variable."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    body: Scalar


Scalar: TypeAlias = (Const | Var | AxisName | BracketIndex | KernelIs | TaskIndex | CalendarEntry | ReplicaIndex | SymbolRef
                     | ParamScalar | ParamExtent | DimOf | StrideOf | Element | SlotValue | Unary | Binary | Select | Sum)


# ---- building, with the simplifications that keep printed expressions as the user would write them ----

def binary(op: Op, lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return `lhs op rhs`, folded when both are constants or one is neutral."""
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        return Const(apply_binary(op, lhs.value, rhs.value))
    if op in COMPARISONS or op in LOGICAL or not (scalar_dtype(lhs).is_integer and scalar_dtype(rhs).is_integer):
        return Binary(op, lhs, rhs)   # a float may be NaN or have a fraction, and a bool in arithmetic becomes an integer
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
    """(a + 1) + 2 → a + 3, and (a + 16) - a → 16: keeps slice extents constant."""
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
    if offset > 0 or offset == -(1 << 63):   # whose negation does not fit
        return Binary(Op.ADD, base, Const(offset))
    return Binary(Op.SUB, base, Const(-offset))


def _split_const(node: Scalar) -> tuple[Scalar | None, int]:
    match node:
        case Const(value):
            return None, int(value)
        case Binary(Op.ADD, base, Const(value)) if scalar_dtype(base).is_integer:
            return base, int(value)
        case Binary(Op.SUB, base, Const(value)) if scalar_dtype(base).is_integer:
            return base, -int(value)
        case Binary(Op.MUL, Binary(Op.ADD, base, Const(inner)), Const(factor)) if scalar_dtype(base).is_integer:
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
    """Return `op value`, folded when it is constant."""
    if isinstance(value, Const):
        return Const(apply_unary(op, value.value))
    return Unary(op, value)


def select(condition: Scalar, then: Scalar, other: Scalar) -> Scalar:
    """Return `then` where `condition` holds, else `other`."""
    if isinstance(condition, Const) and scalar_dtype(then) is scalar_dtype(other):
        return then if condition.value else other
    return Select(condition, then, other)


def _is(node: Scalar, value: int) -> bool:
    return isinstance(node, Const) and type(node.value) is int and node.value == value


# ---- meaning ----

def evaluate(node: Scalar, leaf: Callable[[Scalar], Number], turn: Callable[[], None] = lambda: None) -> Number:
    """Return the value of `node`; `leaf` gives that of everything but constants and operations (an `Element` included).

    `turn` is called for each summand of a sum: it may raise to end one that is too long.
    """
    match node:
        case Const(value):
            return value
        case Unary(op, value):
            return apply_unary(op, evaluate(value, leaf, turn))
        case Binary(op, lhs, rhs):
            return _held(node, apply_binary(op, evaluate(lhs, leaf, turn), evaluate(rhs, leaf, turn)))
        case Select(condition, then, other):
            chosen = _as_kind(scalar_dtype(node), evaluate(then if evaluate(condition, leaf, turn) else other, leaf, turn))
            return _held(node, wrap_i64(chosen)) if type(chosen) is int else chosen
        case Sum(var, start, stop, step, body):
            total: Number = 0
            for index in range(int(evaluate(start, leaf, turn)), int(evaluate(stop, leaf, turn)), int(evaluate(step, leaf, turn))):
                turn()
                here = Const(index)
                total += evaluate(body, lambda inner, here=here: here.value if inner == var else leaf(inner), turn)  # type: ignore[misc]
            return total
        case _:
            return leaf(node)


def _held(node: Scalar, value: Number) -> Number:
    """Return a wrapped result as what it stands for: a negative number may be an unsigned one."""
    return value % (1 << 64) if type(value) is int and value < 0 and is_unsigned(node) else value


def is_unsigned(node: Scalar) -> bool:
    """Tell whether a 64-bit integer is an unsigned one: read from U64, or made of such alone (and of constants that are not negative).

    A difference and a negation are signed, and so is what has a signed operand; but for a maximum, which is not below the unsigned one.
    """
    match node:
        case SymbolRef(dtype=dtype) | ParamScalar(dtype=dtype):
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


def scalar_dtype(node: Scalar) -> DType:
    """Return I64, F64 or BOOL: the dtype that `node` is computed in (a `ParamScalar` or symbol gives its own class)."""
    match node:
        case Const(value):
            return DType.BOOL if isinstance(value, bool) else DType.F64 if isinstance(value, float) else DType.I64
        case SymbolRef() | ParamScalar():
            return _wide(node.dtype or DType.I64)
        case Element():
            return _wide(node.tensor.dtype)
        case Unary(op, value):
            kind = scalar_dtype(value)
            return DType.I64 if op is Op.NEG and kind.is_bool else kind
        case Binary(op, lhs, rhs):
            if op in COMPARISONS:
                return DType.BOOL
            kinds = {scalar_dtype(lhs), scalar_dtype(rhs)}
            if op is Op.DIV or any(kind.is_float for kind in kinds):
                return DType.F64
            return DType.BOOL if all(kind.is_bool for kind in kinds) and op in LOGICAL else DType.I64
        case Select(_, then, other):
            kinds = {scalar_dtype(then), scalar_dtype(other)}
            return kinds.pop() if len(kinds) == 1 else DType.F64 if any(kind.is_float for kind in kinds) else DType.I64
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
    return DType.F64 if dtype.is_float else DType.BOOL if dtype.is_bool else DType.I64


# ---- walking ----

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


def leaves(node: Scalar) -> tuple[Scalar, ...]:
    """Return every node of the expression that is not an operation or a constant (an `Element`, and what indexes it)."""
    inner = tuple(leaf for child in children(node) for leaf in leaves(child))
    if isinstance(node, Const | Unary | Binary | Select | Sum):
        return inner
    return (node, *inner)


def substitute(node: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Return `node` with `change` applied from the outside in; None keeps a node and goes on to its operands."""
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
