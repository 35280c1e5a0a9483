"""What the passes of a kernel are told beside the kernel."""

from __future__ import annotations

from pto_wsp.plan.model import KernelUse
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class KernelContext:
    """How a kernel is used. `unit_columns`: memory parameters whose columns are always neighbours in memory; `streamed`: those whose
    stores need not stay in the caches; `ragged`: tiles of which a task may bind fewer rows than there are."""

    unit_columns: frozenset[str]
    streamed: frozenset[str] = frozenset()
    ragged: frozenset[str] = frozenset()


def context_of(use: KernelUse) -> KernelContext:
    """Return what the passes are told of a kernel of a plan."""
    neighbours = frozenset(p.name for p, unit in zip(use.kernel.memory_params, use.unit_inner, strict=True) if unit)
    return KernelContext(neighbours, frozenset(use.streamed), frozenset(use.ragged))
