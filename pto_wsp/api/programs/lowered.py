"""`Lowered`: what `w.lower(until=...)` returns."""

from __future__ import annotations

from pto_wsp.passes.pipeline import Named
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Lowered:
    """The IR of a workload behind one pass; printed, its text.

    `until`: the name of the pass. `irs`: one plan; or a kernel, a part of a kernel or a tile program for each that the pass ran on.
    """

    until: str
    irs: tuple[Named, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Lowered({self.until}: {', '.join(ir.name for ir in self.irs)})"
