"""Reductions along rows, to one column, and along columns, to one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pto_wsp.arch.isa.rules import Demand, demands
from pto_wsp.expr import kernel as k
from pto_wsp.expr.tile_program import ALIGN_BYTES
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import computed_in
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copy, regular
from pto_wsp.plan.npu.select.shapes import as_tile
from pto_wsp.types.scalar import Const, Op, Scalar, binary

ROW = {"rowsum": "TROWSUM", "rowmean": "TROWSUM", "rowmax": "TROWMAX", "rowmin": "TROWMIN", "rowprod": "TROWPROD"}
COLUMN = {"colsum": "SUM", "colmean": "SUM", "colmax": "MAX", "colmin": "MIN"}
_GROWN_BYTES = 16384    # a tile may grow to so many bytes,
_GROWN_BY = 4           # or by so many stored rows each one more
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
    """Put what an instruction makes of each row of `tile` into `out`, a column.

    Where it wants as many stored rows on both sides, and a column has more (its 32 bytes), the tile's room grows to as many; rows that
    are long for that are added up to a few numbers first.
    """
    tile = regular(b, tile)
    if demands(name, Demand.ONE_STORED_ROWS, b.arch.family) and tile.stored_rows != out.stored_rows:
        much = _GROWN_BY * (out.stored_rows - tile.stored_rows) > tile.stored_rows
        if much and _grown_bytes(tile, out.stored_rows) > _GROWN_BYTES:
            tile = _shortened(b, name, tile)
        tile = b.grown(tile, out.stored_rows)
    scratch = b.grown(b.like(tile, f"{tile.name}_tmp"), tile.stored_rows)
    b.emit(name, b.column(out), b.flat(tile), b.flat(scratch))


def _grown_bytes(tile: Held, rows: int) -> int:
    return rows * tile.pitch * tile.dtype.nbytes


def _shortened(b: Builder, name: str, tile: Held) -> Held:
    """Return rows of as many elements as 32 bytes hold, whose sums are those of the tile's rows.

    A row is seen as so many equal parts, of which the instruction makes a number each; what is left behind them is added.
    """
    lanes = ALIGN_BYTES // tile.dtype.nbytes
    part = tile.cols // (lanes * lanes) * lanes
    few = b.hold(tile.rows, lanes, tile.dtype, f"{tile.name}_few").part(tile.valid_rows, Const(lanes))
    parts = b.hold(lanes, part, tile.dtype, f"{tile.name}_parts_tmp").part(Const(lanes), Const(part))
    for row in range(tile.rows):
        start, size = tile.offset + row * tile.pitch * tile.dtype.nbytes, tile.dtype.nbytes
        seen = replace(parts, room=tile.room, name=tile.name, offset=start)
        into = replace(few, rows=1, stored_rows=1, valid_rows=Const(1), offset=few.offset + row * ALIGN_BYTES)
        column = replace(into, rows=lanes, cols=1, pitch=1, stored_rows=lanes, valid_rows=Const(lanes), valid_cols=Const(1))
        with b.when(_has_row(tile, row)):
            b.emit(name, b.column(column), b.flat(seen), b.flat(parts))
            for first in range(lanes * part, tile.cols, lanes):
                cols = min(lanes, tile.cols - first)
                one = replace(into, cols=cols, valid_cols=Const(cols))
                b.emit("TADD", b.flat(one), b.flat(one), b.flat(replace(one, room=tile.room, name=tile.name, offset=start + first * size)))
    return few


def _has_row(tile: Held, row: int) -> Scalar:
    """Return the condition that a row is valid; the first one is."""
    if row == 0 or tile.valid_rows == Const(tile.rows):
        return Const(True)
    return binary(Op.GE, tile.valid_rows, Const(row + 1))


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
