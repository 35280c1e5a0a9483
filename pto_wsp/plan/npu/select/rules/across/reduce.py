"""Reductions along rows, to one column, and along columns, to one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import computed_in
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copy
from pto_wsp.plan.npu.select.shapes import as_tile

ROW = {"rowsum": "TROWSUM", "rowmean": "TROWSUM", "rowmax": "TROWMAX", "rowmin": "TROWMIN", "rowprod": "TROWPROD"}
COLUMN = {"colsum": "SUM", "colmean": "SUM", "colmax": "MAX", "colmin": "MIN"}
_STEP = {"SUM": "TADD", "MAX": "TMAX", "MIN": "TMIN"}


def _along_rows(b: Builder, stmt: k.Compute) -> Held:
    tile = as_tile(b, stmt.operands[0], computed_in(stmt.op, stmt.result.type.dtype))
    if tile.cols == 1:
        return tile
    out = b.result(stmt, tile.dtype)
    reduce_rows(b, ROW[stmt.op], out, tile)
    if stmt.op == "rowmean":
        b.emit("TDIVS", b.flat(out), b.flat(out), b.number(float(tile.cols), tile.dtype))
    return out


def reduce_rows(b: Builder, name: str, out: Held, tile: Held) -> None:
    """Put what an instruction makes of each row of `tile` into `out`, a column."""
    scratch = b.like(tile, f"{tile.name}_tmp")
    b.emit(name, b.column(out), b.flat(tile), b.flat(scratch))


def _along_columns(b: Builder, stmt: k.Compute) -> Held:
    tile = as_tile(b, stmt.operands[0], computed_in(stmt.op, stmt.result.type.dtype))
    if tile.rows == 1:
        return tile
    kind = COLUMN[stmt.op]
    if tile.is_column:   # the same bytes as one row
        out = b.result(stmt, tile.dtype)
        reduce_rows(b, f"TROW{kind}", out, tile.turned())
    elif tile.dtype.is_float:
        out = b.result(stmt, tile.dtype)
        b.emit(f"TCOL{kind}", b.flat(out), b.flat(tile))
    else:
        out = _folded(b, _STEP[kind], tile)
    if stmt.op == "colmean":
        b.emit("TDIVS", b.flat(out), b.flat(out), b.number(float(tile.rows), tile.dtype))
    return out


def _folded(b: Builder, name: str, tile: Held) -> Held:
    """Return the rows folded onto each other, half by half: column reductions of integers do not run everywhere."""
    left = tile.rows
    work = b.like(tile, f"{tile.name}_fold")
    source = tile
    while left > 1:
        half = left // 2
        b.emit(name, b.flat(work.band(0, half)), b.flat(source.band(0, half)), b.flat(source.band(left - half, half)))
        if source is tile and left % 2:
            copy(b, work.band(half, 1), tile.band(half, 1))
        left, source = left - half, work
    return work.band(0, 1)


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {**dict.fromkeys(ROW, _along_rows), **dict.fromkeys(COLUMN, _along_columns)}
