"""Rules for elementwise arithmetic: tile with tile, with a number, or with a repeated row or column; u32; expand.

Ops on u32 that depend on the order of numbers run on i32 with the top bit flipped, which keeps the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import TileType
from pto_wsp.npu.isa.instructions import legal
from pto_wsp.npu.rules.builder import Builder, ChipTile
from pto_wsp.npu.rules.functions import name_of
from pto_wsp.npu.rules.lanes import Lanes
from pto_wsp.npu.rules.operands import as_tile, computed_in, expand_tile, fill_tile, number_operand, storage_dtype

BINARY = {"add": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", "maximum": "MAX", "minimum": "MIN"}


def _binary(b: Builder, stmt: k.Compute) -> ChipTile:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    lhs, rhs = stmt.operands
    for number, tile, number_first in ((rhs, lhs, False), (lhs, rhs, True)):
        if isinstance(number, k.ScalarOperand) and isinstance(tile, k.Value) and (plain := number_operand(b, number)) is not None:
            return _with_number(b, stmt, as_tile(b, tile, dtype), plain, number_first)
    return broadcast(b, BINARY[stmt.op], as_tile(b, lhs, dtype), as_tile(b, rhs, dtype), b.result(stmt, dtype))


def _with_number(b: Builder, stmt: k.Compute, tile: ChipTile, number: k.ScalarOperand, number_first: bool) -> ChipTile:
    out = b.result(stmt, tile.dtype)
    scalar = b.number(number.value, tile.dtype)
    if number_first and stmt.op == "sub":
        b.emit("TMULS", b.flat(out), b.flat(tile), b.number(-1, tile.dtype))
        b.emit("TADDS", b.flat(out), b.flat(out), scalar)
    elif number_first and stmt.op == "div":
        b.emit("TDIV", b.flat(out), b.flat(fill_tile(b, tile.rows, tile.cols, tile.dtype, number)), b.flat(tile))
    else:
        b.emit(f"T{BINARY[stmt.op]}S", b.flat(out), b.flat(tile), scalar)
    return out


def broadcast(b: Builder, op: str, lhs: ChipTile, rhs: ChipTile, out: ChipTile) -> ChipTile:
    """Put `lhs op rhs` into `out`, for op ADD, SUB, MUL, DIV, MAX or MIN; either operand may repeat to the shape of `out`."""
    if lhs.type.shape != out.type.shape and (rhs.type.shape != out.type.shape or op not in ("ADD", "MUL", "MAX", "MIN")):
        lhs = expand_tile(b, lhs, out.rows, out.cols)
    elif lhs.type.shape != out.type.shape:
        lhs, rhs = rhs, lhs
    if rhs.type.shape == out.type.shape:
        b.emit(f"T{op}", b.flat(out), b.flat(lhs), b.flat(rhs))
    elif rhs.cols == 1 and rhs.rows == (1 if out.is_column else out.rows):
        b.emit(f"TROWEXPAND{op}", b.flat(out), b.flat(lhs), b.column(rhs))
    elif rhs.cols == 1:   # [1, 1] with [R, C]
        b.emit(f"TROWEXPAND{op}", b.flat(out), b.flat(lhs), b.column(expand_tile(b, rhs, out.rows, 1)))
    else:
        b.emit(f"TCOLEXPAND{op}", b.flat(out), b.flat(lhs), b.flat(rhs))
    return out


def _neg(b: Builder, stmt: k.Compute) -> ChipTile:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    b.emit("TNEG", b.flat(out), b.flat(tile))
    return out


def _abs(b: Builder, stmt: k.Compute) -> ChipTile:
    """Return |x|, as max(x, -x) if TABS does not support the dtype."""
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    if not legal("TABS", dtype, b.arch.family):
        turned = b.like(tile, f"{tile.name}_turned")
        b.emit("TMULS", b.flat(turned), b.flat(tile), b.number(-1, dtype))
        return broadcast(b, "MAX", turned, tile, b.result(stmt, dtype))
    out = b.result(stmt, dtype)
    b.emit("TABS", b.flat(out), b.flat(tile))
    return out


def _relu(b: Builder, stmt: k.Compute) -> ChipTile:
    dtype = computed_in(stmt.op, stmt.result.type.dtype)
    tile = as_tile(b, stmt.operands[0], dtype)
    out = b.result(stmt, dtype)
    if dtype is DType.I16:
        b.emit("TMAXS", b.flat(out), b.flat(tile), b.number(0, dtype))
    else:
        b.emit("TRELU", b.flat(out), b.flat(tile))
    return out


# Ops whose instructions may overwrite an operand: they read each element before they write it.
IN_PLACE = frozenset({*BINARY, "abs", "neg", "relu"})
ELEMENTWISE_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys(BINARY, _binary), "abs": _abs, "neg": _neg, "relu": _relu}


# -- u32 -------------------------------------------------------------------------------------------


_HALF = -(1 << 31)
_FIRST = -100      # first id of the values that represent the operands; ids of kernel values start from 0

_TURNED = ("maximum", "minimum", "rowmax", "rowmin", "colmax", "colmin", "rowargmax", "rowargmin")
_AS_THEY_ARE = ("abs", "relu")

Rule = Callable[[Builder, k.Compute], ChipTile]


def with_u32(rules: Mapping[str, Rule]) -> Mapping[str, Rule]:
    """Return the rules with order-dependent ops extended to u32."""
    return {**rules, **{op: _with_flipped_sign_bits(rules[op]) for op in _TURNED}, **{op: _same(rules[op]) for op in _AS_THEY_ARE},
            "sign": _sign(rules["sign"])}


def _is_u32(stmt: k.Compute) -> bool:
    return any((operand.type.dtype if isinstance(operand, k.Value) else operand.dtype) is DType.U32 for operand in stmt.operands)


def _with_flipped_sign_bits(rule: Rule) -> Rule:
    def select(b: Builder, stmt: k.Compute) -> ChipTile:
        if not _is_u32(stmt):
            return rule(b, stmt)
        operands = []
        for number, operand in enumerate(stmt.operands):
            held = _flip_sign_bit(b, as_tile(b, operand, DType.I32), f"{name_of(stmt)}_in")
            operands.append(k.Value(_FIRST - number, TileType(held.rows, held.cols, DType.I32)))
            b.values[operands[-1].id] = held
        type = stmt.result.type
        signed = replace(stmt, operands=tuple(operands), result=replace(stmt.result, type=type.with_dtype(DType.I32)))
        held = rule(b, signed)
        return _flip_sign_bit(b, held, name_of(stmt)) if type.dtype is DType.U32 else held

    return select


def _flip_sign_bit(b: Builder, held: ChipTile, name: str) -> ChipTile:
    work = Lanes(b, held.rows, held.cols, held.valid_rows, held.valid_cols)
    return work.finish(work.add(work.given(held), _HALF), name)


def _same(rule: Rule) -> Rule:
    return lambda b, stmt: as_tile(b, stmt.operands[0], DType.I32) if _is_u32(stmt) else rule(b, stmt)


def _sign(rule: Rule) -> Rule:
    def select(b: Builder, stmt: k.Compute) -> ChipTile:
        if not _is_u32(stmt):
            return rule(b, stmt)
        work = Lanes(b, *stmt.result.type.shape)
        x = work.given(as_tile(b, stmt.operands[0], DType.I32))
        return work.finish(work.select(work.compare(x, "EQ", 0), 0, 1, DType.I32), name_of(stmt))

    return select


# -- expand ----------------------------------------------------------------------------------------


def _expand(b: Builder, stmt: k.Compute) -> ChipTile:
    operand, type = stmt.operands[0], stmt.result.type
    number = number_operand(b, operand) if isinstance(operand, k.ScalarOperand) else None
    if number is None:
        return expand_tile(b, as_tile(b, operand, storage_dtype(type.dtype)), type.rows, type.cols)
    out = b.result(stmt, storage_dtype(type.dtype))
    b.emit("TEXPANDS", b.flat(out), b.number(number.value, out.dtype))
    return out


CREATE_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {"expand": _expand}
