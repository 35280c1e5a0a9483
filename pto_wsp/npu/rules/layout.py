"""Change the layout of tile values: transposition, rows with and without gaps, copies of rows, and ramps of numbers.

A laid-out value has each row in 32 bytes of its own, or more, so that whole rows can be copied anywhere; columns are rows of the transposed
value. A value of one column gets gaps for that, and loses them afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, add, mul
from pto_wsp.npu.isa.rules import Demand, number_of
from pto_wsp.npu.rules.builder import Builder, ChipTile, padded_cols
from pto_wsp.npu.rules.lanes import copy, regular, row_at


def transpose_tile(b: Builder, held: ChipTile, name: str, stored: bool = False) -> ChipTile:
    """Return a tile with rows and columns exchanged; `stored`: only a store uses the result, which takes rows of any pitch."""
    if 1 in (held.rows, held.cols):
        return held.turned()
    size = held.dtype.nbytes
    by, scratch_by = (number_of("TTRANS", demand, b.arch.family, size) for demand in (Demand.STORED_COLS_BY, Demand.TURNING_ROOM))
    valid = held.valid_cols, held.valid_rows
    out = b.hold(held.cols, held.rows, held.dtype, name, by).part(*valid)
    scratch = b.hold(held.pitch, held.rows, held.dtype, f"{name}_tmp", max(scratch_by, padded_cols(1, held.dtype))).part(*valid)
    b.emit("TTRANS", b.flat(out), b.flat(held), b.flat(scratch))
    return out if stored else regular(b, out)


def allocate_rows(b: Builder, rows: int, cols: int, dtype: DType, name: str) -> ChipTile:
    """Return a new value with each row at a multiple of 32 bytes."""
    held = b.gapped(rows, dtype, name) if cols == 1 else b.hold(rows, cols, dtype, name)
    return held.part(Const(rows), Const(cols))


def lay_out_rows(b: Builder, held: ChipTile) -> ChipTile:
    """Return a value with each row at a multiple of 32 bytes."""
    if not held.is_column:
        return held
    out = allocate_rows(b, held.rows, 1, held.dtype, f"{held.name}_rows")
    b.emit("TROWEXPAND", b.flat(out), b.column(held))
    return out


def without_gaps(b: Builder, held: ChipTile) -> ChipTile:
    """Return a laid-out value in the regular form: a single column loses its gaps, by the maximum of each one-element row."""
    if held.cols > 1 or held.is_column:
        return held
    bits = DType.I32 if held.dtype.nbytes == 4 else DType.I16
    out = b.hold(held.rows, 1, held.dtype, f"{held.name}_col").part(Const(held.rows), Const(1))
    scratch = b.hold(held.rows, held.pitch, bits, f"{held.name}_tmp").part(Const(held.rows), Const(1))   # scratch has its operand's layout
    b.emit("TROWMAX", b.column(out.bits(bits)), b.flat(held.bits(bits)), b.flat(scratch))
    return out


def transpose_rows(b: Builder, held: ChipTile) -> ChipTile:
    """Return the transposed value with each row at a multiple of 32 bytes."""
    if held.rows == held.cols == 1:
        return held
    if held.rows == 1:
        return lay_out_rows(b, held.turned())
    if held.cols == 1:
        return without_gaps(b, held).turned()
    return transpose_tile(b, held, f"{held.name}_turned")


def rows_of(held: ChipTile, first: int, rows: int) -> ChipTile:
    """Return consecutive rows of a laid-out value."""
    offset = held.offset + first * held.pitch * held.dtype.nbytes
    return replace(held, rows=rows, stored_rows=rows, valid_rows=Const(rows), offset=offset)


def first_columns(held: ChipTile, cols: int) -> ChipTile:
    """Return the first columns of a laid-out value."""
    return replace(held, cols=cols, valid_cols=Const(cols))


def copy_rows(b: Builder, out: ChipTile, at: int, step: int, held: ChipTile, first: int, by: int, rows: int) -> None:
    """Copy rows first, first + by, ... of `held` to rows at, at + step, ... of `out`."""
    if rows == 1 or step == by == 1:
        copy(b, rows_of(out, at, rows), rows_of(held, first, rows))
        return
    with b.loop("r", Const(rows)) as r:
        places = (add(Const(at), mul(r, Const(step))), add(Const(first), mul(r, Const(by))))
        b.emit("TMOV", row_at(b, out, places[0]), row_at(b, held, places[1]))


_FIRST = 8      # i32 elements in 32 bytes


def ramp(b: Builder, n: int, name: str) -> ChipTile:
    """Return the numbers from 0 to n - 1 as one row of i32.

    Eight numbers are written one by one, then each instruction doubles their count. TCI could count, but its template arguments differ
    between versions of the headers.
    """
    out = b.hold(1, n, DType.I32, name).part(Const(1), Const(n))
    first = min(n, _FIRST)
    cells = b.gapped(first, DType.I32, f"{name}_cells").part(Const(first), Const(1))
    for number in range(first):
        b.emit("TEXPANDS", b.flat(rows_of(cells, number, 1)), b.number(number, DType.I32))
    scratch = b.gapped(first, DType.I32, f"{name}_tmp").part(Const(first), Const(1))
    column = replace(out.turned(), rows=first, stored_rows=_FIRST, valid_rows=Const(first))
    b.emit("TROWMAX", b.column(column), b.flat(cells), b.flat(scratch))
    done = first
    while done < n:
        more = min(done, n - done)
        b.emit("TADDS", b.flat(_piece(out, done, more)), b.flat(_piece(out, 0, more)), b.number(done, DType.I32))
        done += more
    return out


def _piece(row: ChipTile, first: int, cols: int) -> ChipTile:
    """Return consecutive numbers of a row, starting at a multiple of eight."""
    return replace(row, cols=cols, pitch=padded_cols(cols, row.dtype), valid_cols=Const(cols), offset=row.offset + first * row.dtype.nbytes)
