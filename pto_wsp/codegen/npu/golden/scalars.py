"""Scalar expressions as Python: whole numbers, floats and truth values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

from pto_wsp.errors import unreachable
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import COMPARISONS, Op

Leaf: TypeAlias = Callable[[s.Scalar], str]

# Of whole numbers, which give 0 for a divisor of 0, and of floats.
_DIVISIONS = {Op.FLOORDIV: ("_floordiv", "np.floor_divide"), Op.MOD: ("_mod", "np.mod"), Op.DIV: ("", "np.divide")}


def spell_scalar(node: s.Scalar, leaf: Leaf) -> str:
    """Return Python for `node`, with no parentheses that it does not need; `leaf` spells all but constants and operations."""
    text = _spell(node, leaf)
    return ast.unparse(ast.parse(text, mode="eval")) if "(" in text else text


def _spell(node: s.Scalar, leaf: Leaf) -> str:
    match node:
        case s.Const(float() as value):
            return repr(value) if abs(value) < float("inf") else f"float('{value!r}')"
        case s.Const(value):
            return repr(value)
        case s.Unary(op, value):
            if op is Op.NOT:
                return f"(not {_spell(value, leaf)})" if s.scalar_dtype(value).is_bool else f"(~{_spell(value, leaf)})"
            return f"(-{_spell(value, leaf)})"
        case s.Binary(op, lhs, rhs):
            return _binary(op, lhs, rhs, leaf)
        case s.Select(condition, then, other):
            kind = s.scalar_dtype(node)
            sides = [f"float({_spell(side, leaf)})" if kind is DType.F64 and not s.scalar_dtype(side).is_float else _spell(side, leaf)
                     for side in (then, other)]
            return f"({sides[0]} if {_spell(condition, leaf)} else {sides[1]})"
        case s.Sum():
            unreachable("a sum outside of a cost")
        case _:
            return leaf(node)


def _binary(op: Op, lhs: s.Scalar, rhs: s.Scalar, leaf: Leaf) -> str:
    left, right = _spell(lhs, leaf), _spell(rhs, leaf)
    if op in (Op.MIN, Op.MAX):
        floats = s.scalar_dtype(lhs).is_float or s.scalar_dtype(rhs).is_float
        return f"float(np.{op.value}imum({left}, {right}))" if floats else f"{op.value}({left}, {right})"
    if op in _DIVISIONS and not (isinstance(rhs, s.Const) and rhs.value):
        by_whole, by_float = _DIVISIONS[op]
        floats = op is Op.DIV or s.scalar_dtype(lhs).is_float or s.scalar_dtype(rhs).is_float
        return f"float({by_float}(np.float64({left}), {right}))" if floats else f"{by_whole}({left}, {right})"
    if op in COMPARISONS or op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.FLOORDIV, Op.MOD, Op.AND, Op.OR):
        return f"({left} {op.value} {right})"
    unreachable(f"{op!r} in a plan's values")
