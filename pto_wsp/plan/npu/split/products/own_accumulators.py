"""Which sums of products the cube core can hold: those of which it is known, wherever they are read, what has been added to them.

Others belong to the vector core, which adds up what single products give.
"""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.known.facts import TRUE
from pto_wsp.plan.npu.known.given import Given
from pto_wsp.plan.npu.split.cores.statements import Leaf, Statements
from pto_wsp.plan.npu.split.products.accumulate_products import accumulate_products
from pto_wsp.plan.npu.split.uses import NpuUse
from pto_wsp.types import scalar as s


def own_accumulators(kernel: k.Kernel, use: NpuUse) -> Statements:
    """Return the statements of the kernel with those sums of products in place that the cube core can hold."""
    access = {param.name: one for param, one in zip(use.kernel.memory_params, use.access, strict=True)}
    excluded: frozenset[int] = frozenset()
    while True:
        of = Statements(accumulate_products(kernel, excluded), access, use.shared)
        unfit = frozenset(buffer for buffer in of.accumulators if not _fits(of, Given(of.kernel, access), buffer))
        if not unfit:
            return of
        excluded |= unfit


def _fits(of: Statements, given: Given, buffer: int) -> bool:
    start, *touching = (leaf for leaf in of.leaves
                        if isinstance(leaf.stmt, k.Alloc | k.Read | k.Accumulate) and leaf.stmt.buffer.id == buffer)
    adding = [leaf for leaf in touching if isinstance(leaf.stmt, k.Accumulate)]
    depth = len(start.path)
    if any(isinstance(step, k.If) for leaf in adding for step in leaf.path[depth:]):
        return False
    if any(_reads_too_early(leaf, other, depth) for leaf in touching if isinstance(leaf.stmt, k.Read) for other in adding):
        return False
    known = {loop.var for loop in start.loops}
    parts = {given.product(leaf.stmt) for leaf in adding if isinstance(leaf.stmt, k.Accumulate)}
    looped = [leaf for leaf in adding if len(leaf.path) > depth]
    terms = all(given.terms(leaf.stmt) == TRUE for leaf in looped if isinstance(leaf.stmt, k.Accumulate))
    bounds = [bound for leaf in looped for loop in leaf.loops[len(start.loops):] for bound in (loop.start, loop.stop)]
    fixed = all(leaf in known for node in (*bounds, *parts.copy().pop()) for leaf in s.leaves(node) if isinstance(leaf, s.Var))
    return len(parts) == 1 and terms and fixed


def _reads_too_early(read: Leaf, adding: Leaf, depth: int) -> bool:
    """Tell whether a read stands before something is added in a turn of a loop, or where that may not have run yet."""
    inside = set(map(id, adding.path[depth:]))
    return read.at < adding.at and any(id(step) in inside for step in read.path[depth:])
