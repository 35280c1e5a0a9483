"""Transposition on chip, which works on square blocks: rooms have whole blocks, and what follows sees the tile without them."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held, padded
from pto_wsp.plan.npu.select.layout.copies import copy
from pto_wsp.types.dtype import DType


def block_of(dtype: DType) -> int:
    """Return how many rows and columns a block has."""
    return 32 if dtype.nbytes == 1 else 16


def transposed(b: Builder, held: Held, name: str) -> Held:
    """Return a tile with rows and columns exchanged."""
    if 1 in (held.rows, held.cols):
        return held.turned()
    block = block_of(held.dtype)
    source = _in_room_of(b, held, b.hold(held.rows, held.cols, held.dtype, f"{held.name}_blocks", block)) if not _blocked(held) else held
    out = b.hold(held.cols, held.rows, held.dtype, name, block).part(held.valid_cols, held.valid_rows)
    scratch = b.hold(held.cols, held.rows, held.dtype, f"{name}_tmp", block).part(held.valid_cols, held.valid_rows)
    b.emit("TTRANS", b.flat(out), b.flat(source), b.flat(scratch))
    if out.pitch == padded(out.cols, out.dtype):
        return replace(out, stored_rows=out.rows)
    return _in_room_of(b, out, b.like(out, f"{name}_plain"))


def _blocked(held: Held) -> bool:
    block = block_of(held.dtype)
    return held.stored_rows % block == 0 and held.pitch % block == 0


def _in_room_of(b: Builder, held: Held, out: Held) -> Held:
    """Return a copy in a room that lies otherwise."""
    out = out.part(held.valid_rows, held.valid_cols)
    copy(b, out, held)
    return out
