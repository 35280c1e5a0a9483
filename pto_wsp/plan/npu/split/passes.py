"""The passes of a kernel for the NPU, before it is split into parts of one core each."""

from __future__ import annotations

from pto_wsp.plan.kernel.passes import TILE_PASSES

# What a product starts from and what it is added to is decided when it is known which core owns it.
_DECIDED_LATER = frozenset({"fuse_products", "accumulate_in_place"})

NPU_PASSES = tuple(step for step in TILE_PASSES if step.name not in _DECIDED_LATER)
