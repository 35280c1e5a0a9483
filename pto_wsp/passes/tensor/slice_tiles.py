"""Make tiles of slices whose size is known, so that their bound is seen.

    k[j:min(j + 128, n)]        before
    k[j:+128]                   after: 128 rows, of which the last may be missing
"""

from __future__ import annotations

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, sub
from pto_wsp.ir.tensor_function import ArrayStep, ArrayView, Body, TileCut
from pto_wsp.ir.view import Cut
from pto_wsp.passes.tensor.effects import with_views
from pto_wsp.values import replaced


def with_tile_cuts(body: Body) -> Body:
    """Return a body whose slices of a known size, `k[j:j + 128]` to the end of an axis, are tiles, so that their bound is seen."""
    return flow.rewrite_leaves(body, lambda statement: with_views(statement, _with_tiles))


def _with_tiles(view: ArrayView) -> ArrayView:
    if not view.steps:
        return view
    steps: list[ArrayStep] = []
    for step in view.steps:
        if isinstance(step, Cut) and step.step == 1 and not isinstance(step.start, Const | type(None)):
            size = _size_of(step, ArrayView(view.array, tuple(steps)).shape[step.dim])
            steps.append(step if size is None else TileCut(step.dim, step.start, size))
        else:
            steps.append(step)
    return replaced(view, steps=tuple(steps))


def _size_of(cut: Cut, extent: Scalar) -> int | None:
    """Return the size of a slice that ends at start + size, or where its axis ends."""
    if not (isinstance(cut.stop, Binary) and cut.stop.op is Op.MIN):
        return None
    for stop, end in ((cut.stop.lhs, cut.stop.rhs), (cut.stop.rhs, cut.stop.lhs)):
        size = sub(stop, cut.start)
        if isinstance(size, Const) and end == extent:
            return int(size.value)
    return None
