"""The passes of a kernel, in order, on one page.

A pass is total: it returns a kernel that computes the same and fails at the same guards. `interp` runs the kernel as it was
traced, every other target the one after these passes.
"""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.errors import InternalError
from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.kernel_text import print_kernel
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.memory.plan_arena import plan_arena, verify_after_plan_arena
from pto_wsp.plan.kernel.memory.stream_stores import stream_stores
from pto_wsp.plan.kernel.products.accumulate import accumulate_in_place
from pto_wsp.plan.kernel.products.choose_products import choose_products, verify_after_choose_products
from pto_wsp.plan.kernel.products.fuse_products import fuse_products
from pto_wsp.plan.kernel.rows.form_columns import form_columns, verify_after_form_columns
from pto_wsp.plan.kernel.rows.fuse_rows import fuse_rows, verify_after_fuse_rows
from pto_wsp.plan.kernel.rows.schedule_rows import schedule_rows
from pto_wsp.plan.kernel.rows.trim_rows import trim_rows, verify_after_trim_rows
from pto_wsp.plan.kernel.rows.vectorise import vectorise, verify_after_vectorise
from pto_wsp.plan.kernel.tiles.common import merge_common
from pto_wsp.plan.kernel.tiles.dead_code import drop_dead_code, verify_after_drop_dead_code
from pto_wsp.plan.kernel.tiles.forward_buffers import forward_buffers
from pto_wsp.plan.kernel.tiles.hoist import hoist_invariants
from pto_wsp.plan.kernel.tiles.narrow_loads import narrow_loads, verify_after_narrow_loads
from pto_wsp.plan.kernel.tiles.number_guards import number_guards, verify_after_number_guards
from pto_wsp.plan.kernel.tiles.simplify import simplify
from pto_wsp.values import dataclass


def _nothing(kernel: Kernel) -> None:
    """For a pass that establishes nothing to check."""


@dataclass(frozen=True, slots=True)
class KernelPass:
    """A step from kernel to kernel, and what holds after it."""

    name: str
    run: Callable[[Kernel, KernelContext], Kernel]
    verify: Callable[[Kernel], None] = _nothing


# on whole tiles, for every target
TILE_PASSES = (
    KernelPass("number_guards", number_guards, verify_after_number_guards),   # loads and stores of tensors carry their guard's number
    KernelPass("forward_buffers", forward_buffers),           # a buffer is read only where its value is not known already
    KernelPass("simplify", simplify),                         # no operation gives back what it was given
    KernelPass("merge_common", merge_common),                 # nothing is computed or loaded twice
    KernelPass("narrow_loads", narrow_loads, verify_after_narrow_loads),   # a block of a Tile parameter is loaded, not copied
    KernelPass("hoist_invariants", hoist_invariants),         # no turn of a loop computes again what costs
    KernelPass("fuse_products", fuse_products),               # a @ b + u is one product that starts from u
    KernelPass("accumulate_in_place", accumulate_in_place),   # a product that a buffer keeps is added to it in place
    KernelPass("drop_dead_code", drop_dead_code, verify_after_drop_dead_code),   # every result is used, but for guarded loads
)
# on whole tiles, for code that runs on a CPU
PRODUCT_PASSES = (
    KernelPass("choose_products", choose_products, verify_after_choose_products),   # products say how they run; transpositions go into them
)
# on loops over rows and columns
ROW_PASSES = (
    KernelPass("fuse_rows", fuse_rows, verify_after_fuse_rows),   # what handles rows one by one shares loops over rows
    KernelPass("schedule_rows", schedule_rows),               # a loop over rows waits for no narrow reduction
    KernelPass("form_columns", form_columns, verify_after_form_columns),   # what goes along a row stands in loops over columns
    KernelPass("vectorise", vectorise, verify_after_vectorise),   # every loop says how it runs on vectors
    KernelPass("trim_rows", trim_rows, verify_after_trim_rows),   # rows that no task keeps are not computed
    KernelPass("stream_stores", stream_stores),               # outputs larger than the caches go past them
    KernelPass("plan_arena", plan_arena, verify_after_plan_arena),   # what is kept in memory has its place in scratch
)
KERNEL_PASSES = (*TILE_PASSES, *PRODUCT_PASSES, *ROW_PASSES)

KernelObserver = Callable[[str, Kernel, Kernel], None]


def run_kernel_passes(kernel: Kernel, context: KernelContext | None = None, passes: tuple[KernelPass, ...] = KERNEL_PASSES,
                      observe: KernelObserver | None = None) -> Kernel:
    """Return the kernel after all passes; `observe` is told (name, before, after) of each.

    `context`: None takes every parameter's columns for neighbours in memory.
    Raises: InternalError naming the pass whose `verify` finds that what it establishes does not hold.
    """
    known = KernelContext(frozenset(p.name for p in kernel.memory_params)) if context is None else context
    for step in passes:
        after = step.run(kernel, known)
        try:
            step.verify(after)
        except AssertionError as broken:
            raise InternalError(f"after pass `{step.name}` this does not hold for kernel `{kernel.name}`: {step.verify.__doc__}",
                                f"{broken}\n{print_kernel(after)}") from broken
        if observe is not None:
            observe(step.name, kernel, after)
        kernel = after
    return kernel
