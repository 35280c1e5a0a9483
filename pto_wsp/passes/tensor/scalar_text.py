"""Print scalars of the tensor level as Python: `ceildiv(t, 32)`, `minimum(32, t - i * 32)`, `starts[b + 1]`."""

from __future__ import annotations

import math
from collections.abc import Callable

from pto_wsp.ir.scalar import COMPARISONS, LEVEL, Binary, Const, Op, Scalar, Select, Unary

FUNCTIONS = {Op.MIN: "minimum", Op.MAX: "maximum"}


def scalar_text(node: Scalar, leaf: Callable[[Scalar], str | None], level: int = 0) -> str:
    """Return a scalar as Python text. `leaf`: the text of a node, or None to print it by its parts; `level`: the precedence around."""
    own = leaf(node)
    if own is not None:
        return own
    match node:
        case Const(value):
            return number_text(value) if level == 0 or value >= 0 else f"({number_text(value)})"
        case Unary(op, value):
            return f"{'-' if op is Op.NEG else '~'}{scalar_text(value, leaf, 6)}"
        case Binary(Op.FLOORDIV, Binary(Op.ADD, top, Const(more)), Const(by)) if isinstance(by, int) and more == by - 1 and by > 1:
            return f"ceildiv({scalar_text(top, leaf)}, {by})"
        case Binary(op, lhs, rhs) if op in FUNCTIONS:
            return f"{FUNCTIONS[op]}({scalar_text(lhs, leaf)}, {scalar_text(rhs, leaf)})"
        case Binary(op, lhs, rhs):
            here = LEVEL[op]
            text = f"{scalar_text(lhs, leaf, here + (op in COMPARISONS))} {op.value} {scalar_text(rhs, leaf, here + 1)}"
            return f"({text})" if here < level else text
        case Select(condition, then, other):
            return f"({scalar_text(condition, leaf)}).where({scalar_text(then, leaf)}, {scalar_text(other, leaf)})"
        case _:
            raise ValueError(node)


def number_text(value: float) -> str:
    """Return a number as Python reads it back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
    return repr(value)
