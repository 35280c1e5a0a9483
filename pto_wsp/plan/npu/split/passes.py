"""The passes of a kernel for the NPU, before it is split into parts of one core each."""

from __future__ import annotations

from pto_wsp.plan.kernel.passes import TILE_PASSES, KernelPass
from pto_wsp.plan.npu.split.products.part_products import part_products, verify_after_part_products
from pto_wsp.plan.npu.split.products.sum_in_loops import sum_in_loops

# What a product starts from, and what it is added to, is for the core that owns it.
_NOT_FOR_CORES = frozenset({"fuse_products", "accumulate_in_place"})

NPU_PASSES = (
    *(step for step in TILE_PASSES if step.name not in _NOT_FOR_CORES),
    KernelPass("part_products", part_products, verify_after_part_products),   # a product starts from nothing
    KernelPass("sum_in_loops", sum_in_loops),                                 # products of a loop are added up before what is there already
)
