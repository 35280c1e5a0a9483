"""Transposition on chip: of a tile as it lies, into rows whose length the instruction table gives, and from there into rows as others have
them."""

from __future__ import annotations

from pto_wsp.arch.isa.rules import Demand, number_of
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held, padded
from pto_wsp.plan.npu.select.layout.copies import regular


def transposed(b: Builder, held: Held, name: str, stored: bool = False) -> Held:
    """Return a tile with rows and columns exchanged; `stored`: for a store alone, which takes rows of any length."""
    if 1 in (held.rows, held.cols):
        return held.turned()
    size = held.dtype.nbytes
    by, scratch_by = (number_of("TTRANS", demand, b.arch.family, size) for demand in (Demand.STORED_COLS_BY, Demand.TURNING_ROOM))
    valid = held.valid_cols, held.valid_rows
    out = b.hold(held.cols, held.rows, held.dtype, name, by).part(*valid)
    scratch = b.hold(held.pitch, held.rows, held.dtype, f"{name}_tmp", max(scratch_by, padded(1, held.dtype))).part(*valid)
    b.emit("TTRANS", b.flat(out), b.flat(held), b.flat(scratch))
    return out if stored else regular(b, out)
