"""Copy what no task can bind in another shape: memory keeps an axis whose extent is a symbol, so a reshape that joins such axes moves data.

    y = exp(x.reshape(t * 2, 4))                   x of (t, 8)

    flat = empty((t * 2, 4))                       the copy is written in a shape that both shapes join parts of
    flat.reshape(t, 2, 4)[...] = x.reshape(t, 2, 4)
    y = exp(flat)

A part of an array, or an array with its axes in another order, is copied in the order of its elements before it gets another shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.ir import flow
from pto_wsp.ir.extents import divided, same, simplified
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, Scalar, Var
from pto_wsp.ir.tensor_function import (
    Array,
    ArrayView,
    Body,
    Extents,
    Insert,
    Item,
    Make,
    Put,
    Refold,
    Statement,
    TensorFunction,
    nested_loops,
)
from pto_wsp.ir.view import Pick
from pto_wsp.passes.tensor.effects import fresh_ids, with_views
from pto_wsp.passes.tensor.flatten import may_be_given, split_into
from pto_wsp.source import Span


def with_copied_reshapes(function: TensorFunction) -> Body:
    """Return the body of a function with a copy for each reshape that no task can bind."""
    return _Copying(function).body(function.body)


def common_parts(one: Extents, other: Extents) -> Extents | None:
    """Return the longest extents of which both shapes join neighbours; None where no such extents are found.

    >>> common_parts((Const(6), Const(4)), (Const(2), Const(12)))
    (Const(value=2), Const(value=3), Const(value=4))
    """
    left, right = ([extent for extent in shape if extent != Const(1)] for shape in (one, other))
    parts: list[Scalar] = []
    while left and right:
        a, b = left[0], right[0]
        if same(a, b):
            part, rest, longer = a, None, left
        elif (rest := divided(a, b)) is not None:
            part, longer = b, left
        elif (rest := divided(b, a)) is not None:
            part, longer = a, right
        else:
            return None
        parts.append(simplified(part))
        for side in (left, right):
            if rest is not None and side is longer:
                side[0] = rest
            else:
                del side[0]
    return None if left or right else tuple(parts)


class _Copying:
    def __init__(self, function: TensorFunction) -> None:
        self._ids = fresh_ids(function)
        self._names = Names()

    def body(self, body: Body) -> Body:
        items: list[Item] = []
        for item in body.items:
            if not isinstance(item, flow.Do):
                items.append(flow.with_bodies(item, self.body))
                continue
            leaf = item.leaf
            items.append(flow.Do(with_views(leaf, lambda view, leaf=leaf: self._bindable(view, leaf, items))))     # type: ignore[misc]
        return flow.Sequence(tuple(items))

    def _bindable(self, view: ArrayView, leaf: Statement, items: list[Item]) -> ArrayView:
        """Return a view of the same elements that a task can bind; the copies that the view is of are made by `items`."""
        place = max((at for at, step in enumerate(view.steps) if isinstance(step, Refold)), default=None) if view.steps else None
        if place is None:
            return view
        before, refold, behind = view.steps[:place], view.steps[place], view.steps[place + 1:]
        assert isinstance(refold, Refold)
        source = ArrayView(view.array)
        if not _is_all(ArrayView(view.array, before)):
            source = self._copied(self._bindable(ArrayView(view.array, before), leaf, items), leaf, items)
        own = source.array.shape
        if not _can_be_given(refold.shape, own):
            parts = common_parts(own, refold.shape)
            if parts is None or not _can_be_given(parts, own) or not _can_be_given(parts, refold.shape):
                return view
            return self._refolded(source, refold.shape, parts, leaf.span, items).then(*behind)
        return view if source.array == view.array else source.then(refold, *behind)

    def _copied(self, view: ArrayView, leaf: Statement, items: list[Item]) -> ArrayView:
        """Return an array of its own with what a view has."""
        copy = Array(next(self._ids), self._names.take(_name_of(leaf, "part")), view.shape, view.dtype)
        items += [flow.Do(Make(copy, None, leaf.span)), flow.Do(Put(ArrayView(copy), view, span=leaf.span))]
        return ArrayView(copy)

    def _refolded(self, source: ArrayView, shape: Extents, parts: Extents, span: Span, items: list[Item]) -> ArrayView:
        """Return an array of another shape with the elements of `source`, copied in blocks of `parts`."""
        copy = Array(next(self._ids), self._names.take(f"{source.array.name}.reshaped"), shape, source.dtype)
        items.append(flow.Do(Make(copy, None, span)))
        to, of = ArrayView(copy).then(Refold(parts)), source.then(Refold(parts))
        n_picked = max((_picked(parts, whole) for whole in (shape, source.array.shape)), default=0)
        loops: list[tuple[Var, Scalar]] = []
        for extent in parts[:n_picked]:
            var = Var(f"{source.array.name}_{len(loops)}", next(self._ids))
            to, of = to.then(Pick(0, var)), of.then(Pick(0, var))
            loops.append((var, extent))
        items += nested_loops(loops, flow.Sequence((flow.Do(Put(to, of, span=span)),)), span).items
        return ArrayView(copy)


def _picked(parts: Extents, whole: Extents) -> int:
    """Return how many of the first parts must be taken one position at a time, so that the rest lie in dimensions of known size."""
    groups = split_into(parts, whole) or []
    return max((group[at - 1] + 1 for group in groups for at in range(1, len(group)) if not isinstance(parts[group[at]], Const)), default=0)


def _can_be_given(shape: Extents, own: Extents) -> bool:
    """Tell whether memory of extents `own` can be bound in a shape."""
    if all(isinstance(extent, Const) for extent in (*shape, *own)):
        return True
    return may_be_given(shape, own) or split_into(shape, own) is not None


def _is_all(view: ArrayView) -> bool:
    """Tell whether a view has all elements of its array in their order."""
    for place, step in enumerate(view.steps):
        match step:
            case Insert() | Refold():
                pass
            case Pick(dim) if ArrayView(view.array, view.steps[:place]).shape[dim] == Const(1):
                pass
            case _:
                return False
    return True


def _name_of(leaf: Statement, what: str) -> str:
    names: Sequence[str] = [array.name for array in leaf.defines] or [leaf.target.array.name if isinstance(leaf, Put) else "value"]
    return f"{names[0]}.{what}"
