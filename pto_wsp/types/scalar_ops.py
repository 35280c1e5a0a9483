"""What the operations on scalars mean, on plain numbers: the one definition that folding, the interpreter and C agree on.

>>> apply_binary(Op.FLOORDIV, -7, 2)
-4
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

Number: TypeAlias = int | float | bool


class Op(Enum):
    """An operation on one or two scalars; the value is how it prints."""

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

    def __repr__(self) -> str:
        return f"Op.{self.name}"


COMPARISONS = frozenset({Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE})
LOGICAL = frozenset({Op.AND, Op.OR, Op.NOT})


def wrap_i64(value: int) -> int:
    """Return `value` as a 64-bit signed integer holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def apply_unary(op: Op, value: Number) -> Number:
    """Return what `op` makes of one number."""
    if op is Op.NEG:
        return -value if isinstance(value, float) else wrap_i64(-int(value))
    if op is Op.NOT:
        return (not value) if isinstance(value, bool) else wrap_i64(~int(value))
    raise ValueError(op)


def apply_binary(op: Op, lhs: Number, rhs: Number) -> Number:
    """Return what `op` makes of two numbers: 64-bit integers unless one is a float."""
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
