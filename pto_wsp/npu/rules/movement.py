"""Rules for ops that move elements: copies of blocks, reshape, gather, scatter, and row and column numbers.

The op table lists the blocks that an op copies. Whole rows move at once. Columns that start at multiples of 32 bytes move row by row; other
columns are rows of the transposed tile, which is transposed back. `gather` and `scatter` compare an index with every place in turn, so an
index out of range reads and writes nothing; the cost grows with the number of places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Var
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.rules.builder import Builder, ChipTile
from pto_wsp.npu.rules.functions import name_of
from pto_wsp.npu.rules.lanes import Lane, Lanes, copy, copy_tile, moved_as, row_at
from pto_wsp.npu.rules.layout import (
    allocate_rows,
    copy_rows,
    first_columns,
    lay_out_rows,
    ramp,
    rows_of,
    transpose_rows,
    transpose_tile,
    without_gaps,
)
from pto_wsp.npu.rules.masks import cast_lanes
from pto_wsp.npu.rules.operands import as_tile, expand_tile, number_operand, on_chip, storage_dtype
from pto_wsp.npu.rules.order import sorted_values
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Copy, Movement


def _transpose(b: Builder, stmt: k.Compute) -> ChipTile:
    held = as_tile(b, stmt.operands[0], storage_dtype(stmt.result.type.dtype))
    return transpose_tile(b, held, stmt.result.name or f"transposed_{stmt.result.id}")


def _select_movement(b: Builder, stmt: k.Compute) -> ChipTile:
    entry, type = find(stmt.op), stmt.result.type
    assert isinstance(entry, Movement)
    dtype = storage_dtype(type.dtype)
    types = [operand.type if isinstance(operand, k.Value) else replace(type, rows=1, cols=1) for operand in stmt.operands]
    copies = entry.copies(types, type, stmt.attrs)
    fills = stmt.operands[1] if entry.fills else None
    parts = {place: lay_out_rows(b, as_tile(b, stmt.operands[place], dtype)) for place in dict.fromkeys(c.operand for c in copies)
             if stmt.operands[place] is not fills}
    bands: dict[tuple[int, int], list[Copy]] = {}
    for one in copies:
        if one.operand in parts:
            bands.setdefault((one.target // type.cols, one.rows), []).append(one)
    out = _allocate_result(b, stmt, type.rows, type.cols, dtype, fills if len(copies) > sum(map(len, bands.values())) else None)
    for (row, rows), members in bands.items():
        if all(_starts_rows(one, type.cols, dtype) for one in members):
            for one in members:
                _by_rows(b, out, row, one, parts[one.operand], type.cols)
        else:
            copy(b, rows_of(out, row, rows), _by_columns(b, stmt, members, parts, rows, fills))
    return without_gaps(b, out)


def _allocate_result(b: Builder, stmt: k.Compute, rows: int, cols: int, dtype: DType, fill: k.Operand | None) -> ChipTile:
    """Return a new value for a result, or for a part of it, with `fill` in every element."""
    out = allocate_rows(b, rows, cols, dtype, stmt.result.name or f"{stmt.op}_{stmt.result.id}")
    number = number_operand(b, fill) if isinstance(fill, k.ScalarOperand) else None
    if number is not None:
        b.emit("TEXPANDS", b.flat(out), b.number(number.value, dtype))
    elif fill is not None:
        copy(b, out, lay_out_rows(b, expand_tile(b, as_tile(b, fill, dtype), rows, cols)))
    return out


def _starts_rows(one: Copy, width: int, dtype: DType) -> bool:
    """Return whether a block's rows start at multiples of 32 bytes and have no gaps, on both sides."""
    starts = (one.source[1], one.target % width)
    return one.across[1] == one.steps[1] == 1 and all(start * dtype.nbytes % tp.ALIGN_BYTES == 0 for start in starts)


def _by_rows(b: Builder, out: ChipTile, row: int, one: Copy, held: ChipTile, width: int) -> None:
    first, target = one.source[1], one.target % width
    narrow, wide = first_columns(held, one.cols), first_columns(out, one.cols)
    if first == target == 0:
        copy_rows(b, wide, row, 1, narrow, one.source[0], one.down[0], one.rows)
        return
    base, source = rows_of(wide, row, one.rows), rows_of(narrow, one.source[0], 1)
    with b.loop("r", Const(one.rows)) as r:
        b.emit("TMOV", row_at(b, base, r, target), row_at(b, replace(source, pitch=source.pitch * one.down[0]), r, first))


def _by_columns(b: Builder, stmt: k.Compute, members: Sequence[Copy], parts: Mapping[int, ChipTile], rows: int,
                fill: k.Operand | None) -> ChipTile:
    """Return a band of the result, assembled from columns."""
    width = stmt.result.type.cols
    turned = _allocate_result(b, stmt, width, rows, parts[members[0].operand].dtype, fill)
    for one in members:
        held = parts[one.operand]
        if (one.source[0], one.down[0], rows) != (0, 1, held.rows):
            chosen = allocate_rows(b, rows, held.cols, held.dtype, f"{held.name}_rows")
            copy_rows(b, chosen, 0, 1, held, one.source[0], one.down[0], rows)
            held = chosen
        copy_rows(b, turned, one.target % width, one.steps[1], transpose_rows(b, held), one.source[1], one.across[1], one.cols)
    return transpose_rows(b, turned)


def _reshape(b: Builder, stmt: k.Compute) -> ChipTile:
    """Return a value in a new shape.

    Rows without gaps are the same bytes in the new shape; other values go through 32-byte cells, one per element.
    """
    type = stmt.result.type
    held = as_tile(b, stmt.operands[0], storage_dtype(type.dtype))
    if (held.rows, held.cols) == (type.rows, type.cols):
        return held
    if 1 in (held.rows, held.cols) and 1 in (type.rows, type.cols):
        return held.turned()
    size, n = held.dtype.nbytes, type.n_elements
    if all(shape.cols * size % tp.ALIGN_BYTES == 0 or 1 in shape.shape for shape in (held.type, type)) and \
            (held.is_column or held.rows == 1 or held.pitch == held.cols):
        if type.cols == 1:
            return replace(held, rows=n, cols=1, pitch=1, stored_rows=n, valid_rows=Const(n), valid_cols=Const(1))
        pitch = type.cols if type.rows > 1 else held.pitch if held.rows == 1 else n
        return replace(held, rows=type.rows, cols=type.cols, pitch=pitch, stored_rows=type.rows, valid_rows=Const(type.rows),
                       valid_cols=Const(type.cols))
    cells = b.gapped(n, held.dtype, f"{held.name}_cells").part(Const(n), Const(1))
    if held.is_column:
        cells = lay_out_rows(b, held)
    else:
        for row in range(held.rows):
            column = rows_of(held, row, 1).turned()
            b.emit("TROWEXPAND", b.flat(rows_of(cells, row * held.cols, held.cols)), b.column(column))
    if type.cols == 1:
        return without_gaps(b, cells)
    out = allocate_rows(b, type.rows, type.cols, held.dtype, stmt.result.name or f"reshape_{stmt.result.id}")
    for row in range(type.rows):
        copy(b, rows_of(out, row, 1), without_gaps(b, rows_of(cells, row * type.cols, type.cols)).turned())
    return out


_BY_COPIES = ("slice", "slice_even", "slice_odd", "concat", "interleave", "pad")
MOVEMENT_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys(_BY_COPIES, _select_movement), "transpose": _transpose, "reshape": _reshape}


# -- gather and scatter ----------------------------------------------------------------------------


def _gather(b: Builder, stmt: k.Compute) -> ChipTile:
    already_sorted = sorted_values(b, stmt)
    if already_sorted is not None:
        return already_sorted
    x, index = _place_by_rows(b, stmt)
    rows, cols = _shape(stmt)
    x, index = lay_out_rows(b, _spread(b, x, x.rows, cols)), _spread(b, index, rows, cols)
    out = b.hold(rows, cols, x.dtype, name_of(stmt))
    b.emit("TEXPANDS", b.flat(out.bits(moved_as(out.dtype))), b.number(0, moved_as(out.dtype)))
    with b.loop("place", Const(x.rows)) as place:
        row = _row(b, x, place, rows)
        work = Lanes(b, rows, cols)
        hit = _at_width(work, work.compare(work.given(index), "EQ", place), x.dtype)
        copy(b, out, work.finish(work.select(hit, work.given(row), work.given(out)), f"{name_of(stmt)}_then"))
    return _restore_layout(b, stmt, out)


def _scatter(b: Builder, stmt: k.Compute) -> ChipTile:
    x, index, value = _place_by_rows(b, stmt)
    rows, cols = x.rows, x.cols
    n = max(index.rows, value.rows)
    index, value = (lay_out_rows(b, _spread(b, one, n, cols)) for one in (index, value))
    out = copy_tile(b, without_gaps(b, x), name_of(stmt))
    places = expand_tile(b, ramp(b, rows, f"{name_of(stmt)}_places").turned(), rows, cols)
    with b.loop("n", Const(n)) as at:
        wanted, given = _row(b, index, at, rows), _row(b, value, at, rows)
        work = Lanes(b, rows, cols)
        hit = _at_width(work, work.compare(work.given(places), "EQ", work.given(wanted)), x.dtype)
        old, new = work.given(out), work.given(given)
        result = work.select(hit, _sum(work, old, new) if stmt.op == "scatter_add" else new, old)
        copy(b, out, work.finish(result, f"{name_of(stmt)}_then"))
    return _restore_layout(b, stmt, out)


def _sum(work: Lanes, x: Lane, y: Lane) -> Lane:
    if x.dtype is not DType.BF16:
        return work.add(x, y)
    return work.convert(work.add(work.convert(x, DType.F32), work.convert(y, DType.F32)), DType.BF16, "RINT")


# -- places as rows

def _place_by_rows(b: Builder, stmt: k.Compute) -> list[ChipTile]:
    """Return the operands, transposed if places are columns."""
    held = [as_tile(b, operand, on_chip(operand)) for operand in stmt.operands]
    return [transpose_rows(b, lay_out_rows(b, one)) for one in held] if _along_columns(stmt) else held


def _along_columns(stmt: k.Compute) -> bool:
    return any(name == "axis" and value == 1 for name, value in stmt.attrs)


def _shape(stmt: k.Compute) -> tuple[int, int]:
    """Return the result's rows and columns, exchanged if places are columns."""
    rows, cols = stmt.result.type.shape
    return (cols, rows) if _along_columns(stmt) else (rows, cols)


def _spread(b: Builder, held: ChipTile, rows: int, cols: int) -> ChipTile:
    return expand_tile(b, without_gaps(b, held), rows, cols)


def _row(b: Builder, held: ChipTile, row: Var, rows: int) -> ChipTile:
    """Return row `row`, a run-time scalar, repeated in every row of a tile."""
    one = b.hold(1, held.cols, held.dtype, f"{held.name}_row")
    b.emit("TMOV", b.flat(one.bits(moved_as(one.dtype))), row_at(b, held, row))
    return expand_tile(b, one, rows, held.cols)


def _restore_layout(b: Builder, stmt: k.Compute, out: ChipTile) -> ChipTile:
    return without_gaps(b, transpose_rows(b, lay_out_rows(b, out))) if _along_columns(stmt) else out


def _at_width(work: Lanes, mask: Lane, dtype: DType) -> Lane:
    """Return a packed mask of i32 elements as a packed mask of elements as wide as `dtype`."""
    if dtype.nbytes == 4:
        return mask
    return work.compare(work.convert(work.select(mask, 1.0, 0.0), DType.F16, "RINT"), "NE", 0.0)


# -- row and column numbers

def _iota(b: Builder, stmt: k.Compute) -> ChipTile:
    rows, cols = stmt.result.type.shape
    along = _along_columns(stmt)
    numbers = ramp(b, cols if along else rows, f"{name_of(stmt)}_numbers")
    line = numbers if along else numbers.turned()
    work = Lanes(b, line.rows, line.cols)
    wanted = work.finish(cast_lanes(work, work.given(line), DType.I32, stmt.result.type.dtype, None, None), name_of(stmt))
    return expand_tile(b, wanted, rows, cols)


PLACE_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    "gather": _gather, "scatter": _scatter, "scatter_add": _scatter, "iota": _iota}
