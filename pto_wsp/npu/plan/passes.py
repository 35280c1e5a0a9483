"""The passes of a kernel for the NPU: those before the kernel is split into parts of one core each, and those of each part."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.npu.plan.part_writes import verify_after_widen_part_writes, widen_part_writes
from pto_wsp.npu.plan.products import narrow_products, part_products, sum_in_loops, turn_loads, verify_after_part_products
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.kernel.passes import KERNEL, TILE_PASSES, KernelPass
from pto_wsp.passes.kernel.tiles import merge_common
from pto_wsp.passes.pipeline import Fact, Level, Pass

NPU_PASSES: tuple[KernelPass, ...] = (
    # buffers are written as a whole
    Pass("widen_part_writes", KERNEL, widen_part_writes, verify_after_widen_part_writes),
    # what a product starts from, and what it is added to, is for the core that owns it
    *(step for step in TILE_PASSES if Fact.PRODUCT_STARTS not in step.establishes),
    # whole numbers are multiplied in the width in which they are loaded
    Pass("narrow_products", KERNEL, narrow_products),
    # a product starts from nothing
    Pass("part_products", KERNEL, part_products, verify_after_part_products,
         required="the cube core starts each product from nothing"),
    # products of a loop are added up before what is there already
    Pass("sum_in_loops", KERNEL, sum_in_loops),
)

PART = Level("part of a kernel", Kernel, print_kernel)
# nothing is loaded twice
_MERGE_COMMON_OF_PART: KernelPass = Pass("merge_common_of_part", PART, merge_common)
PART_PASSES: Mapping[Unit, tuple[KernelPass, ...]] = {
    # transpositions go into the loads
    Unit.CUBE: (Pass("turn_loads", PART, turn_loads,
                     required="the cube core reads what is transposed as it loads"), _MERGE_COMMON_OF_PART),
    Unit.VECTOR: (_MERGE_COMMON_OF_PART,),
}
