"""Tiles from numbers and smaller tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.shapes import as_tile, expanded, number_of


def _expand(b: Builder, stmt: k.Compute) -> Held:
    operand, type = stmt.operands[0], stmt.result.type
    number = number_of(b, operand) if isinstance(operand, k.ScalarOperand) else None
    if number is None:
        return expanded(b, as_tile(b, operand, carried(type.dtype)), type.rows, type.cols)
    out = b.result(stmt, carried(type.dtype))
    b.emit("TEXPANDS", b.flat(out), b.number(number.value, out.dtype))
    return out


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {"expand": _expand}
