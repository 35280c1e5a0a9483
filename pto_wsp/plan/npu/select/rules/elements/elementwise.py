"""Arithmetic of single elements: tile with tile, with a number, and with a row or column that repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.arch.isa.instruction import legal
from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import computed_in
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.shapes import as_tile, expanded, filled, number_of
from pto_wsp.types.dtype import DType

BINARY = {"add": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", "maximum": "MAX", "minimum": "MIN"}


def _binary(b: Builder, stmt: k.Compute) -> Held:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    lhs, rhs = stmt.operands
    for number, tile, number_first in ((rhs, lhs, False), (lhs, rhs, True)):
        if isinstance(number, k.ScalarOperand) and isinstance(tile, k.Value) and (plain := number_of(b, number)) is not None:
            return _with_number(b, stmt, as_tile(b, tile, dtype), plain, number_first)
    return broadcast(b, BINARY[stmt.op], as_tile(b, lhs, dtype), as_tile(b, rhs, dtype), b.result(stmt, dtype))


def _with_number(b: Builder, stmt: k.Compute, tile: Held, number: k.ScalarOperand, number_first: bool) -> Held:
    out = b.result(stmt, tile.dtype)
    scalar = b.number(number.value, tile.dtype)
    if number_first and stmt.op == "sub":
        b.emit("TMULS", b.flat(out), b.flat(tile), b.number(-1, tile.dtype))
        b.emit("TADDS", b.flat(out), b.flat(out), scalar)
    elif number_first and stmt.op == "div":
        b.emit("TDIV", b.flat(out), b.flat(filled(b, tile.rows, tile.cols, tile.dtype, number)), b.flat(tile))
    else:
        b.emit(f"T{BINARY[stmt.op]}S", b.flat(out), b.flat(tile), scalar)
    return out


def broadcast(b: Builder, op: str, lhs: Held, rhs: Held, out: Held) -> Held:
    """Put `lhs op rhs` into `out`, for op ADD, SUB, MUL, DIV, MAX or MIN; either may repeat to the shape of `out`."""
    if lhs.type.shape != out.type.shape and (rhs.type.shape != out.type.shape or op not in ("ADD", "MUL", "MAX", "MIN")):
        lhs = expanded(b, lhs, out.rows, out.cols)
    elif lhs.type.shape != out.type.shape:
        lhs, rhs = rhs, lhs
    if rhs.type.shape == out.type.shape:
        b.emit(f"T{op}", b.flat(out), b.flat(lhs), b.flat(rhs))
    elif rhs.cols == 1 and rhs.rows == (1 if out.is_column else out.rows):
        b.emit(f"TROWEXPAND{op}", b.flat(out), b.flat(lhs), b.column(rhs))
    elif rhs.cols == 1:   # [1, 1] with [R, C]
        b.emit(f"TROWEXPAND{op}", b.flat(out), b.flat(lhs), b.column(expanded(b, rhs, out.rows, 1)))
    else:
        b.emit(f"TCOLEXPAND{op}", b.flat(out), b.flat(lhs), b.flat(rhs))
    return out


def _neg(b: Builder, stmt: k.Compute) -> Held:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    b.emit("TNEG", b.flat(out), b.flat(tile))
    return out


def _abs(b: Builder, stmt: k.Compute) -> Held:
    """|x|; the larger of x and -x where TABS does not take the dtype."""
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    if not legal("TABS", dtype, b.arch.family):
        turned = b.like(tile, f"{tile.name}_turned")
        b.emit("TMULS", b.flat(turned), b.flat(tile), b.number(-1, dtype))
        return broadcast(b, "MAX", turned, tile, b.result(stmt, dtype))
    out = b.result(stmt, dtype)
    b.emit("TABS", b.flat(out), b.flat(tile))
    return out


def _relu(b: Builder, stmt: k.Compute) -> Held:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    if dtype is DType.I16:
        b.emit("TMAXS", b.flat(out), b.flat(tile), b.number(0, dtype))
    else:
        b.emit("TRELU", b.flat(out), b.flat(tile))
    return out


# Instructions of these ops may write over a whole operand, which they have read by then element by element.
IN_PLACE = frozenset({*BINARY, "abs", "neg", "relu"})
RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    **dict.fromkeys(BINARY, _binary), "abs": _abs, "neg": _neg, "relu": _relu}
