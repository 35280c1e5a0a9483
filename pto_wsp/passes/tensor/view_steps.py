"""Compose the steps of views: views of views become short, and what comes to nothing goes.

>>> composed(ArrayView(x, (Pick(1, Const(0)), Insert(1), Permute((1, 0)), Permute((1, 0))))) == ArrayView(x)      # x: [t, 1]
True
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pto_wsp.ir.extents import same, simplified
from pto_wsp.ir.scalar import Const, Scalar, add, mul
from pto_wsp.ir.tensor_function import ArrayStep, ArrayView, Extents, Flip, Insert, Refold, TileCut
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.substitute import with_step_scalars


def composed(view: ArrayView) -> ArrayView:
    """Return the same part of the array by as few steps as the rules below find: the same object, if these are its steps."""
    return _composed(view) if view.steps else view


@lru_cache(maxsize=4096)      # a view is asked for in each round of `simplify`, and by its check
def _composed(view: ArrayView) -> ArrayView:
    steps: list[ArrayStep] = []
    for step in view.steps:
        _append(view, steps, with_step_scalars(step, simplified))
    return view if steps == list(view.steps) else ArrayView(view.array, tuple(steps))


def _append(view: ArrayView, steps: list[ArrayStep], step: ArrayStep) -> None:
    """Append a step, joined with those before where a rule applies; the steps that a rule gives are appended likewise."""
    shape = ArrayView(view.array, tuple(steps)).shape
    if _is_nothing(step, shape):
        return
    if isinstance(step, Refold):
        units = _units(shape, step.shape)
        if units is not None:
            for each in units:
                _append(view, steps, each)
            return
    if steps:
        before = ArrayView(view.array, tuple(steps[:-1])).shape
        joined = _joined(steps[-1], step, before)
        if joined is not None:
            steps.pop()
            for each in joined:
                _append(view, steps, each)
            return
    steps.append(step)


def _is_nothing(step: ArrayStep, shape: Extents) -> bool:
    match step:
        case Permute(order):
            return order == tuple(range(len(order)))
        case Cut(dim, Const(0), stop, 1):
            return same(stop, shape[dim])
        case TileCut(dim, Const(0), size):
            return shape[dim] == Const(size)
        case Flip(dim):
            return shape[dim] == Const(1)
        case Refold(extents):
            return len(extents) == len(shape) and all(map(same, extents, shape))
        case _:
            return False


def _joined(first: ArrayStep, second: ArrayStep, shape: Extents) -> tuple[ArrayStep, ...] | None:
    """Return the steps that two steps on an array of that shape come to; None where the two stay as they are.

    Picks move to the front, then cuts by dimension, then what only places dimensions: so each meets the earlier step that it joins.
    """
    match first, second:
        case Permute(order), Permute(then):
            return (Permute(tuple(order[k] for k in then)),)
        case Refold(), Refold():
            return (second,)
        case Flip(dim), Flip(other) if dim == other:
            return ()
        case Insert(dim), Pick(other) if dim == other:
            return ()
        case Pick(dim, Const(0)), Insert(other) if dim == other and shape[dim] == Const(1):
            return ()
        case Cut(dim, start, _, by), Pick(other, index) if dim == other:
            return (Pick(dim, simplified(add(start, mul(index, Const(by))))),)
        case Cut(dim, start, _, 1), Cut(other, low, high, by) if dim == other:
            return (Cut(dim, simplified(add(start, low)), simplified(add(start, high)), by),)
        case Cut(dim, start, _, by), Cut(other, Const(low), Const(high), step) if dim == other and high > low:
            last = int(low) + (int(high) - 1 - int(low)) // step * step
            return (Cut(dim, simplified(add(start, Const(int(low) * by))), simplified(add(start, Const(last * by + 1))), by * step),)
        case Permute(order), Pick(dim, index):
            gone = order[dim]
            return Pick(gone, index), Permute(tuple(k - (k > gone) for k in order if k != gone))
        case Permute(order), Cut(dim, start, stop, by):
            return Cut(order[dim], start, stop, by), first
        case Permute(order), TileCut(dim, start, size):
            return TileCut(order[dim], start, size), first
        case Insert(at), Cut(dim, start, stop, by) if dim != at:
            return Cut(dim - (dim > at), start, stop, by), first
        case Insert(at), TileCut(dim, start, size) if dim != at:
            return TileCut(dim - (dim > at), start, size), first
        case Insert(at), Pick(dim, index):
            return Pick(dim - (dim > at), index), Insert(at - (dim < at))
        case (Cut(dim) | TileCut(dim) | Flip(dim)), (Cut(other) | TileCut(other)) if other < dim:
            return second, first
        case (Cut(dim) | TileCut(dim) | Flip(dim)), Pick(other) if other != dim:
            return second, _with_dim(first, dim - (dim > other))
        case _:
            return None


def _with_dim(step: ArrayStep, dim: int) -> ArrayStep:
    match step:
        case Cut(_, start, stop, by):
            return Cut(dim, start, stop, by)
        case TileCut(_, start, size):
            return TileCut(dim, start, size)
        case Flip():
            return Flip(dim)
        case _:
            return step


def _units(shape: Extents, wanted: Extents) -> tuple[ArrayStep, ...] | None:
    """Return the steps that add and drop dimensions of extent 1, if a shape comes by these alone."""
    def kept(extents: Sequence[Scalar]) -> list[Scalar]:
        return [extent for extent in extents if extent != Const(1)]

    large, large_wanted = kept(shape), kept(wanted)
    if len(large) != len(large_wanted) or not all(map(same, large, large_wanted)):
        return None
    drops = [Pick(k, Const(0)) for k in reversed(range(len(shape))) if shape[k] == Const(1)]
    adds = [Insert(k) for k in range(len(wanted)) if wanted[k] == Const(1)]
    return *drops, *adds


def dims_of_array(view: ArrayView) -> tuple[Sequence[int | None], frozenset[int | None]]:
    """Return the dimension of the array that each dimension of a view is, None for none, and those of which the view may take a part."""
    dims: list[int | None] = list(range(view.array.rank))
    parts: set[int | None] = set()
    for step in view.steps:
        match step:
            case Pick(dim):
                parts.add(dims.pop(dim))
            case Cut(dim) | TileCut(dim):
                parts.add(dims[dim])
            case Insert(dim):
                dims.insert(dim, None)
            case Permute(order):
                dims = [dims[k] for k in order]
            case Refold(shape):
                parts.update(dims)
                dims = [None] * len(shape)
            case _:
                pass
    return dims, frozenset(parts)
