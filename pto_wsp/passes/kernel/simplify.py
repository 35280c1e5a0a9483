"""Drop operations whose result equals an operand bit for bit, and fold operations on constants.

    %1 = mul %0, 1.0
    %2 = transpose %1
    %3 = transpose %2
    store y, %3              →      store y, %0

Operations that may change a bit stay: x + 0.0 turns -0.0 into 0.0, x * 0 loses a NaN. Constants are folded only for operations on which
NumPy and C agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, map_bodies, map_uses
from pto_wsp.ops.spec import Convert, Elementwise, Expand, evaluate
from pto_wsp.ops.table import find
from pto_wsp.ops.traits import Side
from pto_wsp.ops.whole import Movement
from pto_wsp.passes.kernel.context import KernelContext


def simplify(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel without operations that change nothing."""
    return replace(kernel, body=_simplify_body(kernel.body, {}, {}))


def _simplify_body(body: Body, names: Mapping[int, k.Operand], made: Mapping[int, k.Compute]) -> Body:
    """Simplify a body. `names`: replacements of values; `made`: the remaining operations, by the id of their result."""
    names, made = dict(names), dict(made)
    out: list[k.Stmt] = []

    def named(value: k.Value) -> k.Value:
        replacement = names.get(value.id, value)
        return replacement if isinstance(replacement, k.Value) else value

    for stmt in body:
        if isinstance(stmt, k.Compute):
            allowed = isinstance(find(stmt.op), Elementwise | Expand)   # these take a number in place of a tile
            operands = tuple(named(o) if isinstance(o, k.Value) and not allowed else
                             names.get(o.id, o) if isinstance(o, k.Value) else o for o in stmt.operands)
            stmt = stmt if operands == stmt.operands else replace(stmt, operands=operands)
            same = _unchanged_operand(stmt, made)
            if same is not None:
                names[stmt.result.id] = same
                continue
            number = _number(stmt)
            if number is not None:
                names[stmt.result.id] = number   # the tile stays for users that need a tile in memory
            made[stmt.result.id] = stmt
        else:
            stmt = map_bodies(map_uses(stmt, named), lambda inner: _simplify_body(inner, names, made))
        out.append(stmt)
    return tuple(out)


def _unchanged_operand(stmt: k.Compute, made: Mapping[int, k.Compute]) -> k.Value | None:
    """Return the operand that the operation returns unchanged, if any."""
    same = _same_operand(stmt, made)
    return same if isinstance(same, k.Value) and same.type == stmt.result.type else None


def _same_operand(stmt: k.Compute, made: Mapping[int, k.Compute]) -> k.Operand | None:
    first, last = (stmt.operands[0], stmt.operands[-1]) if stmt.operands else (None, None)
    entry, dtype = find(stmt.op), stmt.result.type.dtype
    match entry:
        case Convert():
            return None if dict(stmt.attrs).get("saturate") and dtype.is_real else first    # saturation clamps infinities
        case Expand():
            return first
        case Movement() if entry.keeps_order:
            return first
        case Movement() | Elementwise() if dtype in entry.undoes_itself:
            return _inner(stmt, first, made)
        case Elementwise() if dtype in entry.selects:
            return last if stmt.operands[1] == last else None
        case Elementwise() if len(stmt.operands) == 1:
            return first if dtype in entry.idempotent and _inner(stmt, first, made) is not None else None
        case Elementwise() if len(stmt.operands) == 2:
            if _is_neutral(entry, last, dtype, Side.RIGHT) or (first == last and dtype in entry.idempotent):
                return first
            return last if _is_neutral(entry, first, dtype, Side.LEFT) else None
        case _:
            return None


def _inner(stmt: k.Compute, operand: k.Operand | None, made: Mapping[int, k.Compute]) -> k.Operand | None:
    """Return the operand of the same operation that computed `operand`, if the same operation did."""
    before = made.get(operand.id) if isinstance(operand, k.Value) else None
    return before.operands[0] if before is not None and before.op == stmt.op and before.attrs == stmt.attrs else None


def _is_neutral(entry: Elementwise, operand: k.Operand | None, dtype: DType, side: Side) -> bool:
    """Tell whether the operation with this constant on that side leaves every bit of the other operand unchanged."""
    return isinstance(operand, k.ScalarOperand) and isinstance(operand.value, s.Const) \
        and entry.is_neutral(operand.value.value, dtype, side)


def _number(stmt: k.Compute) -> k.ScalarOperand | None:
    """Return the result of an operation on constants, if NumPy and C agree on the operation."""
    entry, dtype = find(stmt.op), stmt.result.type.dtype
    values = [o.value.value for o in stmt.operands if isinstance(o, k.ScalarOperand) and isinstance(o.value, s.Const)]
    if dtype not in entry.folds or not values or len(values) != len(stmt.operands) or stmt.result.type.shape != (1, 1):
        return None
    if isinstance(entry, Expand):
        return k.ScalarOperand(s.Const(values[0]), dtype)
    result = evaluate(entry, [np.full((1, 1), value, dtype.np) for value in values], stmt.result.type, stmt.attrs).item()
    return k.ScalarOperand(s.Const(result), dtype) if math.isfinite(result) else None
