"""Entries that the manifests of all targets share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pto_wsp.artifact.manifest import SymbolEntry, TensorEntry
from pto_wsp.ir.plan import TensorSlot
from pto_wsp.ir.scalar import SymbolRef


def tensor_entries(slots: Sequence[TensorSlot]) -> tuple[TensorEntry, ...]:
    """Return the tensors of a plan, for its manifest."""
    return tuple(TensorEntry(slot=k, name=slot.ref.shown, dtype=str(slot.ref.dtype), shape=slot.ref.shape, access=_access(slot))
                 for k, slot in enumerate(slots))


def symbol_entries(symbols: Sequence[SymbolRef]) -> tuple[SymbolEntry, ...]:
    """Return the symbols of a plan, for its manifest."""
    return tuple(SymbolEntry(slot=k, name=symbol.name, dtype=str(symbol.dtype), default=symbol.default)
                 for k, symbol in enumerate(symbols))


def _access(slot: TensorSlot) -> Literal["in", "out", "inout", "scalars"]:
    if slot.reads and slot.writes:
        return "inout"
    return "out" if slot.writes else "in" if slot.reads else "scalars"
