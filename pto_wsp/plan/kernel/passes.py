"""The passes of a kernel, in order, on one page.

A pass is total: it returns a kernel that computes the same and fails at the same guards. `interp` runs the kernel as it was
traced, every other target the one after these passes.
"""

from __future__ import annotations

from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.kernel_text import print_kernel
from pto_wsp.passes.pipeline import Fact, Level, Observer, Pass, run_passes
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

KERNEL = Level("kernel", Kernel, print_kernel)
KernelPass = Pass[Kernel, KernelContext]
KernelObserver = Observer[Kernel]

_STARTS, _FORMS = frozenset({Fact.PRODUCT_STARTS}), frozenset({Fact.PRODUCT_FORMS})
_ROWS, _COLUMNS = frozenset({Fact.ROWS}), frozenset({Fact.COLUMNS})

# on whole tiles, for every target
TILE_PASSES: tuple[KernelPass, ...] = (
    # loads and stores of tensors carry their guard's number
    Pass("number_guards", KERNEL, number_guards, verify_after_number_guards),
    # a buffer is read only where its value is not known already
    Pass("forward_buffers", KERNEL, forward_buffers),
    # no operation gives back what it was given
    Pass("simplify", KERNEL, simplify),
    # nothing is computed or loaded twice
    Pass("merge_common", KERNEL, merge_common),
    # a block of a Tile parameter is loaded, not copied
    Pass("narrow_loads", KERNEL, narrow_loads, verify_after_narrow_loads),
    # no turn of a loop computes again what costs
    Pass("hoist_invariants", KERNEL, hoist_invariants),
    # a @ b + u is one product that starts from u
    Pass("fuse_products", KERNEL, fuse_products, establishes=_STARTS),
    # a product that a buffer keeps is added to it in place
    Pass("accumulate_in_place", KERNEL, accumulate_in_place, establishes=_STARTS),
    # every result is used, but for guarded loads
    Pass("drop_dead_code", KERNEL, drop_dead_code, verify_after_drop_dead_code),
)
# on whole tiles, for code that runs on a CPU
PRODUCT_PASSES: tuple[KernelPass, ...] = (
    # products say how they run; transpositions go into them
    Pass("choose_products", KERNEL, choose_products, verify_after_choose_products, establishes=_FORMS),
)
# on loops over rows and columns
ROW_PASSES: tuple[KernelPass, ...] = (
    # what handles rows one by one shares loops over rows
    Pass("fuse_rows", KERNEL, fuse_rows, verify_after_fuse_rows, establishes=_ROWS),
    # a loop over rows waits for no narrow reduction
    Pass("schedule_rows", KERNEL, schedule_rows, needs=_ROWS),
    # what goes along a row stands in loops over columns
    Pass("form_columns", KERNEL, form_columns, verify_after_form_columns, needs=_ROWS, establishes=_COLUMNS),
    # every loop says how it runs on vectors
    Pass("vectorise", KERNEL, vectorise, verify_after_vectorise, needs=_COLUMNS),
    # rows that no task keeps are not computed
    Pass("trim_rows", KERNEL, trim_rows, verify_after_trim_rows, needs=_ROWS | _FORMS),
    # outputs larger than the caches go past them
    Pass("stream_stores", KERNEL, stream_stores),
    # what is kept in memory has its place in scratch
    Pass("plan_arena", KERNEL, plan_arena, verify_after_plan_arena, needs=_ROWS | _COLUMNS, establishes=frozenset({Fact.SCRATCH})),
)
KERNEL_PASSES = (*TILE_PASSES, *PRODUCT_PASSES, *ROW_PASSES)


def any_use(kernel: Kernel) -> KernelContext:
    """Return the context of a kernel whose uses are not known: every parameter's columns are neighbours in memory."""
    return KernelContext(frozenset(p.name for p in kernel.memory_params))


def run_kernel_passes(kernel: Kernel, context: KernelContext | None = None, passes: tuple[KernelPass, ...] = KERNEL_PASSES,
                      observe: KernelObserver | None = None) -> Kernel:
    """Return the kernel after passes; `context`: None for `any_use`.

    Raises: as `run_passes`.
    """
    return run_passes(kernel, any_use(kernel) if context is None else context, passes, observe)
