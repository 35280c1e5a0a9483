"""Copies on chip. They move bits: dtypes that TMOV does not take everywhere are seen as one of their width that it takes."""

from __future__ import annotations

from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.types.dtype import DType

_MOVED_AS = {DType.BF16: DType.F16, DType.I16: DType.F16, DType.U16: DType.F16, DType.U32: DType.I32}


def moved_as(dtype: DType) -> DType:
    """Return the dtype that elements of `dtype` are copied as."""
    return _MOVED_AS.get(dtype, dtype)


def copy(b: Builder, out: Held, held: Held) -> None:
    """Put the valid part of a value into `out`, whose valid part is as large."""
    copy_to(b, b.flat(out.bits(moved_as(out.dtype))), held)


def copy_to(b: Builder, tile: int, held: Held) -> None:
    """Put a value into a tile, which is of the dtype that it is copied as."""
    b.emit("TMOV", tile, b.flat(held.bits(moved_as(held.dtype))))


def copy_from(b: Builder, out: Held, tile: int) -> None:
    """Put a tile, which is of the dtype that it is copied as, into `out`."""
    b.emit("TMOV", b.flat(out.bits(moved_as(out.dtype))), tile)


def copied(b: Builder, held: Held, name: str) -> Held:
    """Return a copy in a room of its own."""
    out = b.like(held, name)
    copy(b, out, held)
    return out
