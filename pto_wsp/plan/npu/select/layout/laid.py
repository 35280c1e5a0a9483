"""Values with each row in 32 bytes of its own, or more: what is moved by rows. A value of one column gets gaps, and loses them again.

Rows start at multiples of 32 bytes, so whole rows can be copied anywhere; columns are rows of what is turned over.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copy, row_at
from pto_wsp.plan.npu.select.layout.turn import transposed
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, add, mul


def hold_laid(b: Builder, rows: int, cols: int, dtype: DType, name: str) -> Held:
    """Return room for a value with each row in bytes of its own."""
    held = b.gapped(rows, dtype, name) if cols == 1 else b.hold(rows, cols, dtype, name)
    return held.part(Const(rows), Const(cols))


def laid(b: Builder, held: Held) -> Held:
    """Return a value with each row in bytes of its own."""
    if not held.is_column:
        return held
    out = hold_laid(b, held.rows, 1, held.dtype, f"{held.name}_rows")
    b.emit("TROWEXPAND", b.flat(out), b.column(held))
    return out


def without_gaps(b: Builder, held: Held) -> Held:
    """Return a value as others have it: one column without gaps. The largest of one element, as an integer, is that element."""
    if held.cols > 1 or held.is_column:
        return held
    bits = DType.I32 if held.dtype.nbytes == 4 else DType.I16
    out = b.hold(held.rows, 1, held.dtype, f"{held.name}_col").part(Const(held.rows), Const(1))
    scratch = b.hold(held.rows, held.pitch, bits, f"{held.name}_tmp").part(Const(held.rows), Const(1))   # stored as its operand is
    b.emit("TROWMAX", b.column(out.bits(bits)), b.flat(held.bits(bits)), b.flat(scratch))
    return out


def turned_over(b: Builder, held: Held) -> Held:
    """Return rows as columns and columns as rows, each row in bytes of its own."""
    if held.rows == held.cols == 1:
        return held
    if held.rows == 1:
        return laid(b, held.turned())
    if held.cols == 1:
        return without_gaps(b, held).turned()
    return transposed(b, held, f"{held.name}_turned")


def rows_of(held: Held, first: int, rows: int) -> Held:
    """Return some rows of a value that is laid out by rows."""
    offset = held.offset + first * held.pitch * held.dtype.nbytes
    return replace(held, rows=rows, stored_rows=rows, valid_rows=Const(rows), offset=offset)


def first_columns(held: Held, cols: int) -> Held:
    """Return the first columns of a value that is laid out by rows."""
    return replace(held, cols=cols, valid_cols=Const(cols))


def copy_rows(b: Builder, out: Held, at: int, step: int, held: Held, first: int, by: int, rows: int) -> None:
    """Copy rows first, first + by, ... of one value to rows at, at + step, ... of another."""
    if rows == 1 or step == by == 1:
        copy(b, rows_of(out, at, rows), rows_of(held, first, rows))
        return
    with b.loop("r", Const(rows)) as r:
        places = (add(Const(at), mul(r, Const(step))), add(Const(first), mul(r, Const(by))))
        b.emit("TMOV", row_at(b, out, places[0]), row_at(b, held, places[1]))
