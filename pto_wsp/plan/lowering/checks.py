"""What must hold at run time for a task to stay inside its tensors and tiles, as checks in the order of evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.expr.kernel import MemoryParam, TileParam
from pto_wsp.plan.model import Check, CheckKind
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import Cut, Pick, Reshape, View, bounds_of, declared, place_of, print_view


def view_checks(view: View, param: MemoryParam, span: Span) -> tuple[Check, ...]:
    """Return the checks of one view: every index inside its dimension, the result no larger than its tile."""
    found: list[Check] = []
    text = print_view(view)
    for bound in bounds_of(view):
        found.extend(element_checks(bound.value, span, param.name))
        found.extend(element_checks(bound.upper, span, param.name))
        if not _trivial(bound.lower, bound.value, bound.upper):
            kind = CheckKind.RESHAPE if isinstance(view.steps[bound.step], Reshape) else CheckKind.INDEX
            found.append(Check(kind, bound.value, bound.lower, bound.upper, _step_text(view, bound.step), param.name, span))
    if isinstance(param, TileParam):
        dims = place_of(view).dims
        for dim, extent in zip(dims, param.type.shape[2 - len(dims):], strict=True):
            if isinstance(dim.extent, s.Const) or _clipped(dim.extent, extent):
                continue
            fixed = isinstance(declared(dim.extent), s.Const)
            found.append(Check(CheckKind.TILE, dim.extent, s.Const(extent if fixed else 0), s.Const(extent), text, param.name,
                               span))
    return tuple(dict.fromkeys(found))


def element_checks(node: s.Scalar, span: Span, param: str = "") -> tuple[Check, ...]:
    """Return the checks of every tensor element that a scalar expression reads, inner reads first."""
    return tuple(_element_checks(node, span, param))


def _element_checks(node: s.Scalar, span: Span, param: str) -> Iterator[Check]:
    for child in s.children(node):
        yield from _element_checks(child, span, param)
    if isinstance(node, s.Element):
        for dim, index in enumerate(node.index):
            top = s.sub(s.DimOf(node.tensor, dim), s.Const(1))
            yield Check(CheckKind.ELEMENT, index, s.Const(0), top, print_scalar(node), param, span)


def _trivial(lower: s.Scalar, value: s.Scalar, upper: s.Scalar) -> bool:
    """True for checks such as 0 <= 0 <= X.shape[0], which always hold: an extent is never negative."""
    above = value == lower
    return above and (value == upper or (isinstance(upper, s.DimOf) and value == s.Const(0)))


def _clipped(extent: s.Scalar, limit: int) -> bool:
    return isinstance(extent, s.Binary) and extent.op is s.Op.MIN and extent.rhs == s.Const(limit)


def _step_text(view: View, position: int) -> str:
    """The view up to and including the step that the check belongs to."""
    steps = view.steps[:position + 1]
    whole = view.steps
    while len(steps) < len(whole) and isinstance(whole[len(steps)], Pick | Cut):   # X[b, t] reads better than X[b]
        steps = whole[:len(steps) + 1]
    return print_view(View(view.tensor, steps))
