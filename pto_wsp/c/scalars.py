"""Lower dtypes, constants and scalar expressions to C.

In memory a half (f16, bf16) is its bits, in a local variable a float that equals one of its values; fp8 is its bits in both. Scalar
expressions become 64-bit integers, doubles and bools with the meaning of `ir.scalar`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pto_wsp.c import syntax as c
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import COMPARISONS, Op
from pto_wsp.ops.rounding import convert


def memory_type(dtype: DType) -> str:
    """Return the C type of an element in memory; halves and fp8 are their bits."""
    return dtype.c_type


def local_type(dtype: DType) -> str:
    """Return the C type of an element in a local variable: masks are _Bool, which vectorises as a mask, halves are floats."""
    return "_Bool" if dtype.is_bool else "float" if dtype.is_half else dtype.c_type


def literal(value: float | int | bool, dtype: DType) -> c.Expr:
    """Return a constant for a local variable, as NumPy converts `value` to `dtype`.

    >>> literal(1, DType.F32)
    Float(value=1.0, single=True)
    """
    if dtype.is_storage:
        return memory_literal(value, dtype)
    if dtype.is_half:
        return c.Float(float(_as_dtype(value, dtype)), single=True)
    if dtype.is_float:
        return c.Float(float(value), single=not dtype.is_double)
    if dtype.is_bool:
        return c.Int(int(bool(value)))
    number = int(np.asarray(int(value)).astype(dtype.np))
    return c.Int(number, "" if -(1 << 31) <= number < 1 << 31 else "LL" if number < 1 << 63 else "ULL")


def memory_literal(value: float | int | bool, dtype: DType) -> c.Expr:
    """Return a constant as stored in memory: halves and fp8 as their bits."""
    if dtype.is_half or dtype.is_storage:
        return c.Int(int(_as_dtype(value, dtype).view(np.dtype(f"u{dtype.nbytes}"))))
    return literal(value, dtype)


def lowest(dtype: DType) -> c.Expr:
    """Return -inf, or the smallest integer."""
    return c.Float(-math.inf, not dtype.is_double) if dtype.is_float else literal(int(np.iinfo(dtype.np).min), dtype)


def highest(dtype: DType) -> c.Expr:
    """Return inf, or the largest integer."""
    return c.Float(math.inf, not dtype.is_double) if dtype.is_float else literal(int(np.iinfo(dtype.np).max), dtype)


def load_element(element: c.Expr, dtype: DType) -> c.Expr:
    """Return an element in memory converted to its local form."""
    return c.Call(f"pto_widen_{dtype}", (element,)) if dtype.is_half else element


def store_element(value: c.Expr, dtype: DType) -> c.Expr:
    """Return a local value converted to its memory form."""
    if isinstance(value, c.Call) and value.function == f"pto_widen_{dtype}" and dtype.is_half:
        return value.args[0]
    if isinstance(value, c.Float) and dtype.is_half:
        return memory_literal(value.value, dtype)
    return c.Call(f"pto_narrow_{dtype}", (value,)) if dtype.is_half else value


def round_to_dtype(value: c.Expr, dtype: DType) -> c.Expr:
    """Return a computed value rounded to `dtype`."""
    return c.Call(f"pto_round_{dtype}", (value,)) if dtype.is_half else value


def _as_dtype(value: float | int | bool, dtype: DType) -> np.generic:
    held: np.generic = convert(np.array([float(value)]), dtype)[0]
    return held


# -- scalar expressions ----------------------------------------------------------------------------


Leaf = Callable[[s.Scalar], c.Expr]

_FUNCTION = {Op.FLOORDIV: "floordiv", Op.MOD: "mod", Op.MIN: "min", Op.MAX: "max", Op.HASHMOD: "hashmod"}
_WIDE = frozenset({Op.FLOORDIV, Op.MOD, Op.MIN, Op.MAX})


def lower_scalar(node: s.Scalar, leaf: Leaf, *, single: bool = False, wide: bool = True,
                 natural: Callable[[s.Scalar], bool] = lambda _: False) -> c.Expr:
    """Return C for `node`; `leaf` lowers nodes other than constants and operations, such as `Element`.

    A leaf must be an int64_t, a double, or a truth value. `single`: real numbers are floats instead of doubles. `wide`: 128-bit integers
    exist; without them unsigned integers are divided and compared as signed ones. `natural`: whether a scalar is surely not negative, so
    that C divides it as Python does. Integer +, -, * are plain, because the library is compiled with -fwrapv.
    """
    def go(inner: s.Scalar) -> c.Expr:
        match inner:
            case s.Const(bool() as value):
                return c.Int(int(value))
            case s.Const(float() as value):
                return c.Float(value, single=single)
            case s.Const(value):
                return c.Int(int(value), "" if -(1 << 31) <= int(value) < (1 << 31) else "LL")
            case s.Unary(op, value):
                if op is Op.NOT:
                    return c.Prefix("!" if s.scalar_dtype(value).is_bool else "~", go(value))
                return c.Prefix("-", _in_64_bits(value, go(value)))
            case s.Binary(Op.FLOORDIV | Op.MOD as op, lhs, s.Const(int() as divisor)) \
                    if divisor > 0 and natural(lhs) and not s.is_unsigned(lhs):
                return c.Infix("/" if op is Op.FLOORDIV else "%", go(lhs), go(s.Const(divisor)))
            case s.Binary(Op.ADD, s.Unary(Op.NEG, value), s.Const(int()) as whole) if not _is_narrow(value):   # as a reader writes it
                return _binary(Op.SUB, whole, value, go, single=single, wide=wide)
            case s.Binary(op, lhs, rhs):
                return _binary(op, lhs, rhs, go, single=single, wide=wide)
            case s.Select(condition, then, other):
                if s.scalar_dtype(inner).is_float:
                    return c.Ternary(go(condition), as_it_is(then, go(then)), as_it_is(other, go(other)))
                return c.Ternary(go(condition), go(then), go(other))
            case s.Sum(var, start, stop, step, body):
                return _sum(var, start, stop, step, body, go, leaf)
            case _:
                return leaf(inner)
    return go(node)


def _binary(op: Op, lhs: s.Scalar, rhs: s.Scalar, go: Leaf, *, single: bool, wide: bool) -> c.Expr:
    left, right = go(lhs), go(rhs)
    floats = op is Op.DIV or s.scalar_dtype(lhs).is_float or s.scalar_dtype(rhs).is_float
    if floats:
        left, right = as_it_is(lhs, left), as_it_is(rhs, right)
    elif wide and (op in COMPARISONS or op in _WIDE) and (s.is_unsigned(lhs) or s.is_unsigned(rhs)):
        left, right = (c.Cast("pto_wide", as_it_is(side, lowered)) for side, lowered in ((lhs, left), (rhs, right)))
        return c.Call(f"pto_wide_{_FUNCTION[op]}", (left, right)) if op in _WIDE else c.Infix(op.value, left, right)
    if op is Op.DIV:
        real = "float" if single else "double"
        return c.Infix("/", c.Cast(real, left), c.Cast(real, right))
    if op in _FUNCTION:
        return c.Call(f"pto_scalar_{_FUNCTION[op]}_{('f32' if single else 'f64') if floats else 'i64'}", (left, right))
    if op in (Op.ADD, Op.SUB, Op.MUL) and _is_narrow(rhs):
        left = _in_64_bits(lhs, left)
    return c.Infix(op.value, left, right)


def as_it_is(node: s.Scalar, lowered: c.Expr) -> c.Expr:
    """Return C for the number that a scalar represents: an unsigned scalar is converted from int64_t."""
    return c.Cast("uint64_t", lowered) if s.is_unsigned(node) else lowered


def _in_64_bits(node: s.Scalar, lowered: c.Expr) -> c.Expr:
    """Return C for `node` in 64 bits: an expression that C computes as int is converted first."""
    return c.Cast("int64_t", lowered) if _is_narrow(node) else lowered


def _is_narrow(node: s.Scalar) -> bool:
    """Return whether C types `node` as int."""
    match node:
        case s.Const(value):
            return not isinstance(value, float) and -(1 << 31) <= int(value) < (1 << 31)
        case s.Unary(Op.NOT, value):
            return s.scalar_dtype(value).is_bool or _is_narrow(value)
        case s.Binary(op, lhs, rhs):
            return op in COMPARISONS or (op in (Op.AND, Op.OR) and _is_narrow(lhs) and _is_narrow(rhs))
        case s.Select(_, then, other):
            return _is_narrow(then) and _is_narrow(other)
        case _:
            return s.scalar_dtype(node).is_bool


def _sum(var: s.Var, start: s.Scalar, stop: s.Scalar, step: s.Scalar, body: s.Scalar, go: Leaf, leaf: Leaf) -> c.Expr:
    name, total = f"{c.c_ident(var.name)}_{var.id}", f"sum_{var.id}"
    inner = lower_scalar(body, lambda node: c.Name(name) if node == var else leaf(node))
    return c.StatementExpr((
        c.Declare("double" if s.scalar_dtype(body).is_float else "int64_t", total, c.Int(0)),
        c.For("int64_t", name, go(start), go(stop), go(step), (c.Assign(c.Name(total), inner, "+="),),
              wraps=c.may_wrap(go(stop), go(step))),
    ), c.Name(total))
