"""What the passes of a kernel are told beside the kernel."""

from __future__ import annotations

from pto_wsp.plan.model import KernelUse
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class KernelContext:
    """How a kernel is used. `unit_columns`: memory parameters whose columns are always neighbours in memory."""

    unit_columns: frozenset[str]


def context_of(use: KernelUse) -> KernelContext:
    """Return what the passes are told of a kernel of a plan."""
    return KernelContext(frozenset(p.name for p, unit in zip(use.kernel.memory_params, use.unit_inner, strict=True) if unit))
