"""One element of an op in C: its spelling from the table, in the dtype that it computes in, and conversions."""

from __future__ import annotations

import numpy as np

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import literal, rounded
from pto_wsp.errors import unreachable
from pto_wsp.ops.entries.elementwise import maximum, minimum
from pto_wsp.ops.entry import Function, Operator, Spelling
from pto_wsp.ops.rounding import default_mode
from pto_wsp.ops.spec import Cast, Elementwise
from pto_wsp.ops.tracing import Attrs
from pto_wsp.types.dtype import DType

_WHOLE = {"rint": "pto_rint", "round": "pto_away", "floor": "pto_floor", "ceil": "pto_ceil", "trunc": "pto_trunc", "odd": "pto_odd"}
_FIT = {"round": "PTO_AWAY", "floor": "PTO_FLOOR", "ceil": "PTO_CEIL", "trunc": "PTO_TRUNC", "odd": "PTO_ODD"}


def elementwise(entry: Elementwise, operands: tuple[c.Expr, ...], dtype: DType, attrs: Attrs) -> c.Expr:
    """Return an elementwise op on operands of `dtype`."""
    value = spell(entry.form(attrs).c, operands, dtype)
    return rounded(value, dtype) if entry.rounds and not entry.to_mask else value


def spell(spelling: Spelling, operands: tuple[c.Expr, ...], dtype: DType) -> c.Expr:
    """Return an op of the table applied to the elements of its operands, in the dtype that it computes in."""
    match spelling, operands:
        case Function(), _:
            return c.Call(spelling.name(DType.U8 if dtype.is_storage else dtype.computed_in), operands)
        case Operator(""), (only,):
            return only
        case Operator(text), (only,):
            return c.Prefix(text, only)
        case Operator(text), (lhs, rhs):
            return c.Infix(text, lhs, rhs)
        case _:
            unreachable(f"spelling {spelling} of {len(operands)} operands")


def converted(entry: Cast, value: c.Expr, source: DType, target: DType, mode: str | None = None, saturate: bool | None = None) -> c.Expr:
    """Return an element of `source` in the dtype `target`."""
    if source.is_storage:
        value, start = c.Call(f"pto_widen_{source}", (value,)), DType.F32
    else:
        start = source.computed_in
    if source.is_real and target.is_integer:
        rule = mode or default_mode(target)
        whole = value if rule == "trunc" else c.Call(f"{_WHOLE[rule]}_{start}", (value,))
        return c.Call(f"pto_wrap_{start}_{target}" if saturate is False else entry.c.name(target, start), (whole,))
    if not target.is_real:
        return _plain(entry, _clamped(value, start, target) if saturate else value, start, target)
    if target.is_double and not start.is_double:
        return _limited(_plain(entry, value, start, target), target, target, bool(saturate))
    if not source.is_real:
        if saturate and target.format.largest < 2.0 ** 64:      # integers may lie beyond
            value, start = _limited(c.Call(f"pto_single_{start}", (value,)), DType.F32, target, True), DType.F32
        return _plain(entry, value, start, target)
    limit = _limited(value, start, target, bool(saturate))
    if source is target or start is target:
        return limit if not target.is_storage else _plain(entry, limit, start, target)
    if mode is None or mode == "rint":
        return _plain(entry, limit, start, target)
    fitted: c.Expr = c.Call(f"pto_fit_{target}", (limit, c.Name(_FIT[mode])))
    return c.Call(f"pto_narrow_{target}", (fitted,)) if target.is_storage else fitted


def _plain(entry: Cast, value: c.Expr, start: DType, target: DType) -> c.Expr:
    return value if start is target else c.Call(entry.c.name(target, start), (value,))


def _limited(value: c.Expr, start: DType, target: DType, saturate: bool) -> c.Expr:
    """Return a float cut to the largest finite numbers of `target`."""
    return c.Call(f"pto_limit_{start}", (value, literal(target.format.largest, start))) if saturate else value


def _clamped(value: c.Expr, start: DType, target: DType) -> c.Expr:
    """Return an integer cut to what `target` holds, where its own dtype holds more."""
    if start.is_bool or target.is_bool:
        return value
    limits, own = np.iinfo(target.np), np.iinfo(start.np)
    for op, bound in ((maximum, int(limits.min)), (minimum, int(limits.max))):
        if start.holds(bound) and bound not in (own.min, own.max):
            value = spell(op.c, (value, literal(bound, start)), start)
    return value
