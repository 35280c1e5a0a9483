"""Rules for sorting (argsort, topk), for the index of a row's extreme (rowargmax, rowargmin), and for reductions.

Sorting works on pairs of value and column in f32, which represents every number of the supported dtypes: 32 elements at a time, then
four-way merges. The order of equal elements, and of NaN, is the device's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Op, Scalar, binary
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.rules import Demand, demands
from pto_wsp.npu.isa.tile_program import ALIGN_BYTES
from pto_wsp.npu.rules.builder import Builder, ChipTile, Sorted, padded_cols
from pto_wsp.npu.rules.functions import name_of
from pto_wsp.npu.rules.lanes import Lanes, copy, regular, row_at
from pto_wsp.npu.rules.layout import allocate_rows, first_columns, lay_out_rows, ramp, without_gaps
from pto_wsp.npu.rules.masks import cast_lanes
from pto_wsp.npu.rules.operands import as_tile, computed_in, expand_tile, storage_dtype

_BLOCK = 32             # elements that one instruction sorts
_PAIR_WORDS = 2         # a value and its column
_LOWEST = -float.fromhex("0x1.fffffep127")
_FAR = float(1 << 23)   # larger than any column number


def _select_argsort(b: Builder, stmt: k.Compute) -> ChipTile:
    operand, type = stmt.operands[0], stmt.result.type
    descending = ("descending", True) in stmt.attrs or ("descending", 1) in stmt.attrs
    values, columns = _sort_rows(b, as_tile(b, operand, DType.F32), type.cols, not descending, name_of(stmt))
    if isinstance(operand, k.Value):
        b.sorted[stmt.result.id] = Sorted(operand.id, values, not descending)
    return columns


def _sort_rows(b: Builder, held: ChipTile, cols: int, turned: bool, name: str) -> tuple[ChipTile, ChipTile]:
    """Return the first `cols` elements of each sorted row, largest first, and their columns; `turned`: the elements are negated."""
    width = _BLOCK
    while width < held.cols:
        width *= 4
    keys = _keys(b, held, width, turned, name)
    columns = ramp(b, width, f"{name}_columns").bits(DType.U32)
    pairs = b.hold(1, _PAIR_WORDS * width, DType.F32, f"{name}_pairs")
    merged = b.hold(1, _PAIR_WORDS * width, DType.F32, f"{name}_merged")
    values, order = (allocate_rows(b, held.rows, cols, dtype, what) for dtype, what in ((DType.F32, f"{name}_values"), (DType.I32, name)))
    line = b.hold(1, width, DType.F32, f"{name}_line")
    with b.loop("r", Const(held.rows)) if held.rows > 1 else nullcontext(Const(0)) as r:      # one row: keys and columns end before merges
        b.emit("TSORT32", b.flat(pairs), row_at(b, keys, r), b.flat(columns))
        source, target, block = pairs, merged, _BLOCK
        while block < width:
            b.emit("TMRGSORT", b.flat(target), b.flat(source), tp.NumberArg(Const(_PAIR_WORDS * block), DType.U32))
            source, target, block = target, source, 4 * block
        for into, pattern in ((values, "P0101"), (order, "P1010")):
            every = line.bits(into.dtype)
            b.emit("TGATHER", b.flat(every), b.flat(source.bits(into.dtype)), template=_every_second(pattern))
            first = replace(every, cols=cols, pitch=padded_cols(cols, into.dtype), valid_cols=Const(cols))
            b.emit("TMOV", row_at(b, into, r), b.flat(first))
    return without_gaps(b, values), without_gaps(b, order)


def _every_second(pattern: str) -> tuple[str, ...]:
    """Return the template arguments of TGATHER: the operand types, and the words it takes."""
    return "{0}", "{1}", f"MaskPattern::{pattern}"


def _keys(b: Builder, held: ChipTile, width: int, turned: bool, name: str) -> ChipTile:
    """Return the rows padded to `width` columns with elements that sort last; `turned`: negated."""
    held = lay_out_rows(b, held)
    if held.cols == width:
        if not turned:
            return held
        out = b.hold(held.rows, width, DType.F32, f"{name}_keys")
        b.emit("TMULS", b.flat(out), b.flat(held), b.number(-1.0, DType.F32))
        return out
    out = b.hold(held.rows, width, DType.F32, f"{name}_keys")
    b.emit("TEXPANDS", b.flat(out), b.number(float("-inf"), DType.F32))
    part = first_columns(out, held.cols)
    b.emit("TMULS", b.flat(part), b.flat(held), b.number(-1.0 if turned else 1.0, DType.F32))
    b.emit("TMAXS", b.flat(part), b.flat(part), b.number(_LOWEST, DType.F32))
    return out


def sorted_values(b: Builder, stmt: k.Compute) -> ChipTile | None:
    """Return the result of a gather by a sorted column index, which the sort has computed already; None for other gathers."""
    operand, index = stmt.operands
    if ("axis", 1) not in stmt.attrs or not isinstance(operand, k.Value) or not isinstance(index, k.Value):
        return None
    ordering = b.sorted.get(index.id)
    if ordering is None or ordering.source != operand.id:
        return None
    work = Lanes(b, *stmt.result.type.shape)
    x = work.given(ordering.values)
    x = work.select(work.compare(x, "EQ", _LOWEST), float("-inf"), x)
    x = work.mul(x, -1.0) if ordering.turned else x
    dtype = stmt.result.type.dtype
    if storage_dtype(dtype) is not DType.F32:
        x = cast_lanes(work, x, DType.F32, dtype, "rint" if dtype.is_integer else None, None)
    return work.finish(x, name_of(stmt))


# -- index of a row's extreme

def _place(b: Builder, stmt: k.Compute) -> ChipTile:
    """Return the first column whose element equals the row's extreme, or the first NaN if there is one.

    NaN columns rank lower than all others: they are numbered from -_FAR.
    """
    held, rows = as_tile(b, stmt.operands[0], _compared(stmt)), stmt.result.type.rows
    if held.cols == 1:
        return _constant(b, rows, name_of(stmt))
    best = b.hold(rows, 1, held.dtype, f"{name_of(stmt)}_best")
    scratch = b.like(held, f"{name_of(stmt)}_tmp")
    b.emit("TROWMAX" if stmt.op == "rowargmax" else "TROWMIN", b.column(best), b.flat(held), b.flat(scratch))
    columns = expand_tile(b, ramp(b, held.cols, f"{name_of(stmt)}_columns"), rows, held.cols)
    work = Lanes(b, rows, held.cols)
    x, top = work.given(held), work.given(expand_tile(b, best, rows, held.cols))
    numbers = work.convert(work.given(columns), DType.F32, "RINT")
    hits = work.select(work.compare(x, "EQ", top), numbers, _FAR)
    if held.dtype is DType.F32:
        hits = work.select(work.compare(x, "EQ", x), hits, work.add(numbers, -_FAR))
    first_column = b.hold(rows, 1, DType.F32, f"{name_of(stmt)}_first")
    marked = work.finish(hits, f"{name_of(stmt)}_hits")
    b.emit("TROWMIN", b.column(first_column), b.flat(marked), b.flat(b.like(marked, f"{name_of(stmt)}_again")))
    line = Lanes(b, rows, 1)
    first = line.given(first_column)
    first = line.select(line.compare(first, "LT", 0.0), line.add(first, _FAR), first)
    return line.finish(line.convert(first, DType.I32, "RINT"), name_of(stmt))


def _compared(stmt: k.Compute) -> DType:
    operand = stmt.operands[0]
    dtype = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    return DType.I32 if dtype is DType.I32 else DType.F32


def _constant(b: Builder, rows: int, name: str) -> ChipTile:
    out = b.hold(rows, 1, DType.I32, name)
    b.emit("TEXPANDS", b.flat(out), b.number(0, DType.I32))
    return out


# Keys are f32, which cannot represent every i32; a u32 is stored on chip with the bits of an i32, which converts differently.
LACKING: Mapping[str, tuple[DType, ...]] = dict.fromkeys(("argsort", "topk"), (DType.I32, DType.U32))
ORDER_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys(("argsort", "topk"), _select_argsort), **dict.fromkeys(("rowargmax", "rowargmin"), _place)}


# -- reductions ------------------------------------------------------------------------------------


ROW = {"rowsum": "TROWSUM", "rowmean": "TROWSUM", "rowmax": "TROWMAX", "rowmin": "TROWMIN", "rowprod": "TROWPROD"}
COLUMN = {"colsum": "SUM", "colmean": "SUM", "colmax": "MAX", "colmin": "MIN"}
_GROWN_BYTES = 16384    # a tile may grow to this many bytes,
_GROWN_BY = 4           # or by one stored row per this many
_STEP = {"SUM": "TADD", "MAX": "TMAX", "MIN": "TMIN"}


def _along_rows(b: Builder, stmt: k.Compute) -> ChipTile:
    tile = as_tile(b, stmt.operands[0], computed_in(stmt.op, stmt.result.type.dtype))
    if tile.cols == 1:
        return tile
    out = b.result(stmt, tile.dtype)
    reduce_rows(b, ROW[stmt.op], out, tile)
    if stmt.op == "rowmean":
        b.emit("TDIVS", b.flat(out), b.flat(out), b.number(float(tile.cols), tile.dtype))
    return out


def reduce_rows(b: Builder, name: str, out: ChipTile, tile: ChipTile) -> None:
    """Emit the row reduction `name` of `tile` into `out`, a column.

    If the instruction requires equal stored rows on both sides, and a column has more (its 32 bytes), the tile's on-chip buffer grows to as
    many rows; long rows are first reduced to a few elements.
    """
    tile = regular(b, tile)
    if demands(name, Demand.ONE_STORED_ROWS, b.arch.family) and tile.stored_rows != out.stored_rows:
        much = _GROWN_BY * (out.stored_rows - tile.stored_rows) > tile.stored_rows
        if much and _grown_bytes(tile, out.stored_rows) > _GROWN_BYTES:
            tile = _shorten_rows(b, name, tile)
        tile = b.grown(tile, out.stored_rows)
    scratch = b.grown(b.like(tile, f"{tile.name}_tmp"), tile.stored_rows)
    b.emit(name, b.column(out), b.flat(tile), b.flat(scratch))


def _grown_bytes(tile: ChipTile, rows: int) -> int:
    return rows * tile.pitch * tile.dtype.nbytes


def _shorten_rows(b: Builder, name: str, tile: ChipTile) -> ChipTile:
    """Return rows of 32 bytes whose reductions equal those of the tile's rows.

    A row is viewed as equal parts, each reduced to one number; the elements behind the last part are added.
    """
    lanes = ALIGN_BYTES // tile.dtype.nbytes
    part = tile.cols // (lanes * lanes) * lanes
    few = b.hold(tile.rows, lanes, tile.dtype, f"{tile.name}_few").part(tile.valid_rows, Const(lanes))
    parts = b.hold(lanes, part, tile.dtype, f"{tile.name}_parts_tmp").part(Const(lanes), Const(part))
    for row in range(tile.rows):
        start, size = tile.offset + row * tile.pitch * tile.dtype.nbytes, tile.dtype.nbytes
        seen = replace(parts, buffer=tile.buffer, name=tile.name, offset=start)
        into = replace(few, rows=1, stored_rows=1, valid_rows=Const(1), offset=few.offset + row * ALIGN_BYTES)
        column = replace(into, rows=lanes, cols=1, pitch=1, stored_rows=lanes, valid_rows=Const(lanes), valid_cols=Const(1))
        with b.when(_has_row(tile, row)):
            b.emit(name, b.column(column), b.flat(seen), b.flat(parts))
            for first in range(lanes * part, tile.cols, lanes):
                cols = min(lanes, tile.cols - first)
                one = replace(into, cols=cols, valid_cols=Const(cols))
                source = replace(one, buffer=tile.buffer, name=tile.name, offset=start + first * size)
                b.emit("TADD", b.flat(one), b.flat(one), b.flat(source))
    return few


def _has_row(tile: ChipTile, row: int) -> Scalar:
    """Return the condition that a row is valid; the first one always is."""
    if row == 0 or tile.valid_rows == Const(tile.rows):
        return Const(True)
    return binary(Op.GE, tile.valid_rows, Const(row + 1))


def _along_columns(b: Builder, stmt: k.Compute) -> ChipTile:
    tile = as_tile(b, stmt.operands[0], computed_in(stmt.op, stmt.result.type.dtype))
    if tile.rows == 1:
        return tile
    kind = COLUMN[stmt.op]
    if tile.is_column:   # a column is the same bytes as one row
        out = b.result(stmt, tile.dtype)
        reduce_rows(b, f"TROW{kind}", out, tile.turned())
    elif tile.dtype.is_float:
        out = b.result(stmt, tile.dtype)
        b.emit(f"TCOL{kind}", b.flat(out), b.flat(tile))
    else:
        out = _fold_halves(b, _STEP[kind], tile)
    if stmt.op == "colmean":
        b.emit("TDIVS", b.flat(out), b.flat(out), b.number(float(tile.rows), tile.dtype))
    return out


def _fold_halves(b: Builder, name: str, tile: ChipTile) -> ChipTile:
    """Return the rows reduced to one by folding halves onto each other: not every core has column reductions of integers."""
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


REDUCE_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys(ROW, _along_rows), **dict.fromkeys(COLUMN, _along_columns)}
