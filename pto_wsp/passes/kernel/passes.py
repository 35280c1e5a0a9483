"""List the passes of a kernel, in order, and run them.

A pass is total: the resulting kernel computes the same and fails at the same guards. `interp` runs the traced kernel; every other target
runs the kernel after these passes.
"""

from __future__ import annotations

from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.passes.kernel.arena import plan_arena, stream_stores, verify_after_plan_arena
from pto_wsp.passes.kernel.columns import form_columns, verify_after_form_columns
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.products import accumulate_in_place, choose_products, fuse_products, verify_after_choose_products
from pto_wsp.passes.kernel.rows import (
    fuse_rows,
    schedule_rows,
    trim_rows,
    vectorise,
    verify_after_fuse_rows,
    verify_after_trim_rows,
    verify_after_vectorise,
)
from pto_wsp.passes.kernel.simplify import simplify
from pto_wsp.passes.kernel.tiles import (
    drop_dead_code,
    forward_buffers,
    hoist_invariants,
    merge_common,
    narrow_loads,
    number_guards,
    verify_after_drop_dead_code,
    verify_after_narrow_loads,
    verify_after_number_guards,
)
from pto_wsp.passes.pipeline import Fact, Level, Observer, Pass, run_passes

KERNEL = Level("kernel", Kernel, print_kernel)
KernelPass = Pass[Kernel, KernelContext]
KernelObserver = Observer[Kernel]

_STARTS, _FORMS = frozenset({Fact.PRODUCT_STARTS}), frozenset({Fact.PRODUCT_FORMS})
_ROWS, _COLUMNS = frozenset({Fact.ROWS}), frozenset({Fact.COLUMNS})

# on whole tiles, for every target
TILE_PASSES: tuple[KernelPass, ...] = (
    # loads and stores of tensors carry their guard's number
    Pass("number_guards", KERNEL, number_guards, verify_after_number_guards,
         required="a piece outside its region ends the run at the guard of its number"),
    # a buffer is read only if its value is unknown
    Pass("forward_buffers", KERNEL, forward_buffers),
    # no operation returns an operand unchanged
    Pass("simplify", KERNEL, simplify),
    # nothing is computed or loaded twice
    Pass("merge_common", KERNEL, merge_common),
    # a block of a Tile parameter is loaded, not copied
    Pass("narrow_loads", KERNEL, narrow_loads, verify_after_narrow_loads),
    # no iteration recomputes a costly invariant
    Pass("hoist_invariants", KERNEL, hoist_invariants),
    # a @ b + u is one product with initial value u
    Pass("fuse_products", KERNEL, fuse_products, establishes=_STARTS),
    # a product for a buffer is accumulated in place
    Pass("accumulate_in_place", KERNEL, accumulate_in_place, establishes=_STARTS),
    # every result is used, except guarded loads
    Pass("drop_dead_code", KERNEL, drop_dead_code, verify_after_drop_dead_code),
)
# on whole tiles, for code that runs on a CPU
PRODUCT_PASSES: tuple[KernelPass, ...] = (
    # products have a form and absorb transpositions
    Pass("choose_products", KERNEL, choose_products, verify_after_choose_products, establishes=_FORMS,
         required="C is spelled of products that say how they run"),
)
# on loops over rows and columns
ROW_PASSES: tuple[KernelPass, ...] = (
    # row-by-row statements share loops over rows
    Pass("fuse_rows", KERNEL, fuse_rows, verify_after_fuse_rows, establishes=_ROWS,
         required="C is spelled of loops over rows"),
    # no loop over rows stalls on a narrow reduction
    Pass("schedule_rows", KERNEL, schedule_rows, needs=_ROWS),
    # operations along a row are in loops over columns
    Pass("form_columns", KERNEL, form_columns, verify_after_form_columns, needs=_ROWS, establishes=_COLUMNS,
         required="C is spelled of loops over columns"),
    # every loop has its number of SIMD lanes
    Pass("vectorise", KERNEL, vectorise, verify_after_vectorise, needs=_COLUMNS),
    # rows that no task keeps are not computed
    Pass("trim_rows", KERNEL, trim_rows, verify_after_trim_rows, needs=_ROWS | _FORMS),
    # outputs larger than the caches bypass them
    Pass("stream_stores", KERNEL, stream_stores),
    # everything kept in memory has an offset in scratch
    Pass("plan_arena", KERNEL, plan_arena, verify_after_plan_arena, needs=_ROWS | _COLUMNS, establishes=frozenset({Fact.SCRATCH}),
         required="a value that is kept in memory needs a place there"),
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
