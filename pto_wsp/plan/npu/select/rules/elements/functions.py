"""Functions of single elements that are one instruction, and reciprocals.

TRSQRT and TRECIP may be estimates of few bits on a device; a root and a quotient are rounded properly everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import computed_in
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.shapes import as_tile, filled
from pto_wsp.types.scalar import Const

FUNCTIONS = {"exp": "TEXP", "log": "TLOG", "sqrt": "TSQRT"}


def _function(b: Builder, stmt: k.Compute) -> Held:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    b.emit(FUNCTIONS[stmt.op], b.flat(out), b.flat(tile))
    return out


def _reciprocal(b: Builder, stmt: k.Compute) -> Held:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    ones = filled(b, tile.rows, tile.cols, dtype, k.ScalarOperand(Const(1.0), dtype), "ones")
    if stmt.op == "rsqrt":
        b.emit("TSQRT", b.flat(out), b.flat(tile))
        tile = out
    b.emit("TDIV", b.flat(out), b.flat(ones), b.flat(tile))
    return out


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    **dict.fromkeys(FUNCTIONS, _function), "rsqrt": _reciprocal, "recip": _reciprocal}
