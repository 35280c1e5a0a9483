"""Scalar expressions as text.

>>> print_scalar(add(Var("b", 0), Const(1)))
'b + 1'
"""

from __future__ import annotations

from typing import assert_never

from pto_wsp.types.scalar import (
    AxisName,
    Binary,
    BracketIndex,
    CalendarEntry,
    Const,
    DimOf,
    Element,
    KernelIs,
    ParamExtent,
    ParamScalar,
    ReplicaIndex,
    Scalar,
    Select,
    SlotValue,
    StrideOf,
    Sum,
    SymbolRef,
    TaskIndex,
    Unary,
    Var,
)
from pto_wsp.types.scalar_ops import COMPARISONS, Op

_LEVEL = {**dict.fromkeys(COMPARISONS, 1), Op.OR: 2, Op.AND: 3, Op.ADD: 4, Op.SUB: 4, Op.MUL: 5, Op.DIV: 5, Op.FLOORDIV: 5,
          Op.MOD: 5}


def print_scalar(node: Scalar, level: int = 0) -> str:
    """Return the expression as a user would write it."""
    match node:
        case Const(value):
            return repr(value)
        case AxisName(name, default) if default is not None:
            return f"get({name!r}, {print_scalar(default)})"
        case Var(name) | AxisName(name) | SymbolRef(name) | ParamScalar(name):
            return name
        case BracketIndex(position):
            return f"params[{position}]"
        case KernelIs(name):
            return f"(kernel == {name!r})" if level > _LEVEL[Op.EQ] else f"kernel == {name!r}"
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
        case Unary(op, value):
            return f"{'-' if op is Op.NEG else '~'}{print_scalar(value, 6)}"
        case Binary(Op.MIN | Op.MAX | Op.HASHMOD as op, lhs, rhs):
            return f"{op.value}({print_scalar(lhs)}, {print_scalar(rhs)})"
        case Binary(op, lhs, rhs):
            left = _LEVEL[op] if op not in COMPARISONS else _LEVEL[op] + 1
            text = f"{print_scalar(lhs, left)} {op.value} {print_scalar(rhs, _LEVEL[op] + 1)}"
            return f"({text})" if _LEVEL[op] < level else text
        case Select(condition, then, other):
            return f"where({print_scalar(condition)}, {print_scalar(then)}, {print_scalar(other)})"
        case Sum(var, start, stop, step, body):
            bounds = ", ".join(print_scalar(bound) for bound in (start, stop, step))
            return f"sum({print_scalar(body)} for {var.name} in range({bounds}))"
        case _:
            assert_never(node)
