"""0, 1, 2, ... as i32: eight numbers one by one, then twice as many with every instruction.

TCI counts, but its template arguments differ between versions of the headers; what stands here needs none.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held, padded
from pto_wsp.plan.npu.select.layout.laid import rows_of
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const

_FIRST = 8      # i32 in 32 bytes


def ramp(b: Builder, n: int, name: str) -> Held:
    """Return the numbers from 0 to n - 1 as one row."""
    out = b.hold(1, n, DType.I32, name).part(Const(1), Const(n))
    first = min(n, _FIRST)
    cells = b.gapped(first, DType.I32, f"{name}_cells").part(Const(first), Const(1))
    for number in range(first):
        b.emit("TEXPANDS", b.flat(rows_of(cells, number, 1)), b.number(number, DType.I32))
    scratch = b.gapped(first, DType.I32, f"{name}_tmp").part(Const(first), Const(1))
    column = replace(out.turned(), rows=first, stored_rows=_FIRST, valid_rows=Const(first))
    b.emit("TROWMAX", b.column(column), b.flat(cells), b.flat(scratch))
    known = first
    while known < n:
        more = min(known, n - known)
        b.emit("TADDS", b.flat(_piece(out, known, more)), b.flat(_piece(out, 0, more)), b.number(known, DType.I32))
        known += more
    return out


def _piece(row: Held, first: int, cols: int) -> Held:
    """Return some numbers of a row; they start at a multiple of eight."""
    return replace(row, cols=cols, pitch=padded(cols, row.dtype), valid_cols=Const(cols), offset=row.offset + first * row.dtype.nbytes)
