"""Ops that move elements: from the blocks that the op table lists for each.

Rows move whole. Columns that start at multiples of 32 bytes move row by row; others are rows of the tile turned over, and turned back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Copy, Movement
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copy, row_at
from pto_wsp.plan.npu.select.layout.laid import (
    copy_rows,
    first_columns,
    hold_laid,
    laid,
    rows_of,
    turned_over,
    without_gaps,
)
from pto_wsp.plan.npu.select.layout.turn import transposed
from pto_wsp.plan.npu.select.shapes import as_tile, expanded, number_of
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const


def _transpose(b: Builder, stmt: k.Compute) -> Held:
    held = as_tile(b, stmt.operands[0], carried(stmt.result.type.dtype))
    return transposed(b, held, stmt.result.name or f"transposed_{stmt.result.id}")


def _moved(b: Builder, stmt: k.Compute) -> Held:
    entry, type = find(stmt.op), stmt.result.type
    assert isinstance(entry, Movement)
    dtype = carried(type.dtype)
    types = [operand.type if isinstance(operand, k.Value) else replace(type, rows=1, cols=1) for operand in stmt.operands]
    copies = entry.copies(types, type, stmt.attrs)
    fills = stmt.operands[1] if entry.fills else None
    parts = {place: laid(b, as_tile(b, stmt.operands[place], dtype)) for place in dict.fromkeys(c.operand for c in copies)
             if stmt.operands[place] is not fills}
    bands: dict[tuple[int, int], list[Copy]] = {}
    for one in copies:
        if one.operand in parts:
            bands.setdefault((one.target // type.cols, one.rows), []).append(one)
    out = _room(b, stmt, type.rows, type.cols, dtype, fills if len(copies) > sum(map(len, bands.values())) else None)
    for (row, rows), members in bands.items():
        if all(_starts_rows(one, type.cols, dtype) for one in members):
            for one in members:
                _by_rows(b, out, row, one, parts[one.operand], type.cols)
        else:
            copy(b, rows_of(out, row, rows), _by_columns(b, stmt, members, parts, rows, fills))
    return without_gaps(b, out)


def _room(b: Builder, stmt: k.Compute, rows: int, cols: int, dtype: DType, fill: k.Operand | None) -> Held:
    """Return room for a result, or a part of it, with `fill` in every element."""
    out = hold_laid(b, rows, cols, dtype, stmt.result.name or f"{stmt.op}_{stmt.result.id}")
    number = number_of(b, fill) if isinstance(fill, k.ScalarOperand) else None
    if number is not None:
        b.emit("TEXPANDS", b.flat(out), b.number(number.value, dtype))
    elif fill is not None:
        copy(b, out, laid(b, expanded(b, as_tile(b, fill, dtype), rows, cols)))
    return out


def _starts_rows(one: Copy, width: int, dtype: DType) -> bool:
    """Tell whether a block's rows start at multiples of 32 bytes on both sides, and lie without gaps."""
    starts = (one.source[1], one.target % width)
    return one.across[1] == one.steps[1] == 1 and all(start * dtype.nbytes % tp.ALIGN_BYTES == 0 for start in starts)


def _by_rows(b: Builder, out: Held, row: int, one: Copy, held: Held, width: int) -> None:
    first, target = one.source[1], one.target % width
    narrow, wide = first_columns(held, one.cols), first_columns(out, one.cols)
    if first == target == 0:
        copy_rows(b, wide, row, 1, narrow, one.source[0], one.down[0], one.rows)
        return
    base, source = rows_of(wide, row, one.rows), rows_of(narrow, one.source[0], 1)
    with b.loop("r", Const(one.rows)) as r:
        b.emit("TMOV", row_at(b, base, r, target), row_at(b, replace(source, pitch=source.pitch * one.down[0]), r, first))


def _by_columns(b: Builder, stmt: k.Compute, members: Sequence[Copy], parts: Mapping[int, Held], rows: int,
                fill: k.Operand | None) -> Held:
    """Return a band of the result, put together from columns."""
    width = stmt.result.type.cols
    turned = _room(b, stmt, width, rows, parts[members[0].operand].dtype, fill)
    for one in members:
        held = parts[one.operand]
        if (one.source[0], one.down[0], rows) != (0, 1, held.rows):
            chosen = hold_laid(b, rows, held.cols, held.dtype, f"{held.name}_rows")
            copy_rows(b, chosen, 0, 1, held, one.source[0], one.down[0], rows)
            held = chosen
        copy_rows(b, turned, one.target % width, one.steps[1], turned_over(b, held), one.source[1], one.across[1], one.cols)
    return turned_over(b, turned)


def _reshape(b: Builder, stmt: k.Compute) -> Held:
    """Rows without gaps are the same bytes in the new shape; others go through cells of 32 bytes, one an element."""
    type = stmt.result.type
    held = as_tile(b, stmt.operands[0], carried(type.dtype))
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
        cells = laid(b, held)
    else:
        for row in range(held.rows):
            column = rows_of(held, row, 1).turned()
            b.emit("TROWEXPAND", b.flat(rows_of(cells, row * held.cols, held.cols)), b.column(column))
    if type.cols == 1:
        return without_gaps(b, cells)
    out = hold_laid(b, type.rows, type.cols, held.dtype, stmt.result.name or f"reshape_{stmt.result.id}")
    for row in range(type.rows):
        copy(b, rows_of(out, row, 1), without_gaps(b, rows_of(cells, row * type.cols, type.cols)).turned())
    return out


_BY_COPIES = ("slice", "slice_even", "slice_odd", "concat", "interleave", "pad")
RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    **dict.fromkeys(_BY_COPIES, _moved), "transpose": _transpose, "reshape": _reshape}
