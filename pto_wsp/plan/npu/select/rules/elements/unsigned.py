"""Ops on u32 that depend on which number is the larger: as i32, with the first bit of each turned over, which keeps their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas.lanes import Lanes
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.rules.elements.composed import name_of
from pto_wsp.plan.npu.select.shapes import as_tile
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType

_HALF = -(1 << 31)
_FIRST = -100      # of the values that stand for the operands; those of kernels count from 0

_TURNED = ("maximum", "minimum", "rowmax", "rowmin", "colmax", "colmin", "rowargmax", "rowargmin")
_AS_THEY_ARE = ("abs", "relu")

Rule = Callable[[Builder, k.Compute], Held]


def with_u32(rules: Mapping[str, Rule]) -> Mapping[str, Rule]:
    """Return the rules with those of ordered ops for u32 as well."""
    return {**rules, **{op: _turned(rules[op]) for op in _TURNED}, **{op: _same(rules[op]) for op in _AS_THEY_ARE},
            "sign": _sign(rules["sign"])}


def _is_u32(stmt: k.Compute) -> bool:
    return any((operand.type.dtype if isinstance(operand, k.Value) else operand.dtype) is DType.U32 for operand in stmt.operands)


def _turned(rule: Rule) -> Rule:
    def select(b: Builder, stmt: k.Compute) -> Held:
        if not _is_u32(stmt):
            return rule(b, stmt)
        operands = []
        for number, operand in enumerate(stmt.operands):
            held = _turn(b, as_tile(b, operand, DType.I32), f"{name_of(stmt)}_in")
            operands.append(k.Value(_FIRST - number, TileType(held.rows, held.cols, DType.I32)))
            b.values[operands[-1].id] = held
        type = stmt.result.type
        signed = replace(stmt, operands=tuple(operands), result=replace(stmt.result, type=type.with_dtype(DType.I32)))
        held = rule(b, signed)
        return _turn(b, held, name_of(stmt)) if type.dtype is DType.U32 else held

    return select


def _turn(b: Builder, held: Held, name: str) -> Held:
    work = Lanes(b, held.rows, held.cols, held.valid_rows, held.valid_cols)
    return work.finish(work.add(work.given(held), _HALF), name)


def _same(rule: Rule) -> Rule:
    return lambda b, stmt: as_tile(b, stmt.operands[0], DType.I32) if _is_u32(stmt) else rule(b, stmt)


def _sign(rule: Rule) -> Rule:
    def select(b: Builder, stmt: k.Compute) -> Held:
        if not _is_u32(stmt):
            return rule(b, stmt)
        work = Lanes(b, *stmt.result.type.shape)
        x = work.given(as_tile(b, stmt.operands[0], DType.I32))
        return work.finish(work.select(work.compare(x, "EQ", 0), 0, 1, DType.I32), name_of(stmt))

    return select
