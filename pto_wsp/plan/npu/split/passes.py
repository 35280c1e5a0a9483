"""The passes of a kernel for the NPU: before it is split into parts of one core each, and of each part."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.kernel_text import print_kernel
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.pipeline import Fact, Level, Pass
from pto_wsp.plan.kernel.passes import KERNEL, TILE_PASSES, KernelPass
from pto_wsp.plan.kernel.tiles.common import merge_common
from pto_wsp.plan.npu.split.products.part_products import part_products, verify_after_part_products
from pto_wsp.plan.npu.split.products.sum_in_loops import sum_in_loops
from pto_wsp.plan.npu.split.products.turn_loads import turn_loads

NPU_PASSES: tuple[KernelPass, ...] = (
    # what a product starts from, and what it is added to, is for the core that owns it
    *(step for step in TILE_PASSES if Fact.PRODUCT_STARTS not in step.establishes),
    # a product starts from nothing
    Pass("part_products", KERNEL, part_products, verify_after_part_products),
    # products of a loop are added up before what is there already
    Pass("sum_in_loops", KERNEL, sum_in_loops),
)

PART = Level("part of a kernel", Kernel, print_kernel)
# nothing is loaded twice
_MERGE_COMMON_OF_PART: KernelPass = Pass("merge_common_of_part", PART, merge_common)
PART_PASSES: Mapping[Unit, tuple[KernelPass, ...]] = {
    # transpositions go into the loads
    Unit.CUBE: (Pass("turn_loads", PART, turn_loads), _MERGE_COMMON_OF_PART),
    Unit.VECTOR: (_MERGE_COMMON_OF_PART,),
}
