"""Copies on chip. They move bits: dtypes that TMOV does not take everywhere are seen as one of their width that it takes.

TMOV wants equally stored tiles on some cores, so both sides are seen with as many stored rows; rows of another pitch move one by one.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held, padded
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar, add, mul

_MOVED_AS = {DType.BF16: DType.F16, DType.I16: DType.F16, DType.U16: DType.F16, DType.U32: DType.I32}


def moved_as(dtype: DType) -> DType:
    """Return the dtype that elements of `dtype` are copied as."""
    return _MOVED_AS.get(dtype, dtype)


def copy(b: Builder, out: Held, held: Held) -> None:
    """Put the valid part of a value into `out`, whose valid part is as large."""
    sides = [_as_row(one) if out.rows == held.rows == 1 else one for one in (out, held)]
    if out.rows == 1 or out.pitch == held.pitch:
        pitch, stored = min(one.pitch for one in sides), min(one.stored_rows for one in sides)
        b.emit("TMOV", *(b.flat(replace(one, pitch=pitch, stored_rows=stored).bits(moved_as(one.dtype))) for one in sides))
        return
    with b.loop("r", b.named(out.valid_rows, "rows")) as r:
        b.emit("TMOV", row_at(b, out, r), row_at(b, held, r))


def _as_row(held: Held) -> Held:
    """Return one element without gaps as a row, which is the same bytes; any other value of one row is one."""
    return replace(held, pitch=held.stored_rows, stored_rows=1) if held.is_column else held


def copied(b: Builder, held: Held, name: str) -> Held:
    """Return a copy in a room of its own."""
    out = b.like(held, name)
    copy(b, out, held)
    return out


def regular(b: Builder, held: Held) -> Held:
    """Return a value stored as `Builder.hold` does it, itself where it is: operands of many instructions are of one tile type."""
    one_column = held.cols == 1
    pitch = 1 if one_column else padded(held.cols, held.dtype)
    stored = padded(held.rows, held.dtype) if one_column else held.rows
    if held.pitch == pitch and held.stored_rows >= stored:
        return replace(held, stored_rows=stored)
    if one_column:
        return held                     # one column with gaps, which is stored as others with gaps
    return copied(b, held, f"{held.name}_plain")


def row_at(b: Builder, held: Held, row: Scalar, first_col: int = 0) -> int:
    """Return the tile of one row, known when the kernel runs, from some column on; as it is copied, in this block only."""
    size = held.dtype.nbytes
    start = add(mul(row, Const(held.pitch * size)), Const(first_col * size))
    one = replace(held, rows=1, stored_rows=1, valid_rows=Const(1), pitch=padded(held.cols, held.dtype)).bits(moved_as(held.dtype))
    return b.sliding(one, start)
