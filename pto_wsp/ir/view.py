"""Define views: which part of a tensor a task works on, as the steps the user wrote.

Steps are the only stored form; offset, extents, strides and bounds are derived from them.

>>> x = TensorRef(0, (4, 16, 128), DType.F32, "X", Layout.contiguous((4, 16, 128)))
>>> print_view(View(x, (Pick(0, Const(2)),)))
'X[2]'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias, assert_never

from pto_wsp.ir.layout import Layout, TensorRef
from pto_wsp.ir.scalar import Const, DimOf, Scalar, StrideOf, SymbolRef, add, ceil_div, minimum, mul, print_scalar, sub, substitute
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Pick:
    """Take one position of dimension `dim` of the view so far, and drop the dimension."""

    dim: int
    index: Scalar


@dataclass(frozen=True, slots=True)
class Cut:
    """Take start, start + step, … below stop of dimension `dim`."""

    dim: int
    start: Scalar
    stop: Scalar
    step: int = 1


@dataclass(frozen=True, slots=True)
class Clip:
    """Keep at most `limits` positions of each dimension: the valid extent is min(limit, extent). None: the dimension as it is."""

    limits: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Permute:
    """Reorder the dimensions: new dimension k is old dimension order[k]."""

    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reshape:
    """View neighbouring dimensions, which lie contiguously, in another shape. `dims`: the first of them and one behind the last; () all."""

    shape: tuple[int, ...]
    dims: tuple[int, ...] = ()

    def span(self, rank: int) -> tuple[int, int]:
        """Return the first of the dimensions, and one behind the last, in a view of `rank` dimensions."""
        return (self.dims[0], self.dims[1]) if self.dims else (0, rank)


Step: TypeAlias = Pick | Cut | Clip | Permute | Reshape


@dataclass(frozen=True, slots=True)
class View:
    """A tensor, and the steps to a part of it."""

    tensor: TensorRef
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewDim:
    """One dimension of a view: its extent, its stride in elements, and an upper bound of the extent (None: unknown)."""

    extent: Scalar
    stride: Scalar
    limit: int | None


@dataclass(frozen=True, slots=True)
class StridedView:
    """The location of a view: offset in elements from the tensor's first element, and its dimensions."""

    offset: Scalar
    dims: tuple[ViewDim, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """`lower <= value <= upper` must hold for a step to stay inside: proved at compile time, or guarded when tasks are made."""

    step: int
    value: Scalar
    lower: Scalar
    upper: Scalar


def place_of(view: View) -> StridedView:
    """Return the offset and dimensions of a view."""
    return fold(view)[0]


def bounds_of(view: View) -> tuple[Bound, ...]:
    """Return the conditions under which a view lies inside its tensor."""
    return fold(view)[1]


@lru_cache(maxsize=4096)   # typing, lowering, checks and printing ask for the same view
def fold(view: View) -> tuple[StridedView, tuple[Bound, ...]]:
    """Return the place and the bounds of a view, in one pass over its steps."""
    tensor = view.tensor
    offset: Scalar = Const(0)
    dims = [ViewDim(DimOf(tensor, k), StrideOf(tensor, k), tensor.shape[k]) for k in range(tensor.rank)]
    bounds: list[Bound] = []
    for position, step in enumerate(view.steps):
        match step:
            case Pick(dim, index):
                bounds.append(Bound(position, index, Const(0), sub(dims[dim].extent, Const(1))))
                offset = add(offset, mul(index, dims[dim].stride))
                del dims[dim]
            case Cut(dim, start, stop, stride_step):
                old = dims[dim]
                bounds.append(Bound(position, start, Const(0), old.extent))
                if stop != old.extent:
                    bounds.append(Bound(position, stop, start, old.extent))
                span = sub(stop, start)
                extent = span if stride_step == 1 else ceil_div(span, Const(stride_step))
                limit = extent.value if isinstance(extent, Const) else None
                offset = add(offset, mul(start, old.stride))
                dims[dim] = ViewDim(extent, mul(old.stride, Const(stride_step)), None if limit is None else int(limit))
            case Clip(limits):
                dims = [dim if limit is None else ViewDim(minimum(dim.extent, Const(limit)), dim.stride, limit)
                        for dim, limit in zip(dims, limits, strict=True)]
            case Permute(order):
                dims = [dims[k] for k in order]
            case Reshape(shape, within):
                begin, end = step.span(len(dims))
                unit = unit_stride(dims[begin:end]) if within else Const(1)
                bounds.extend(_contiguous_as_declared(position, dims[begin:end], unit))
                dims[begin:end] = [ViewDim(Const(extent), mul(unit, Const(stride)), extent)
                                   for extent, stride in zip(shape, Layout.contiguous(shape).strides, strict=True)]
            case _:
                assert_never(step)
    return StridedView(offset, tuple(dims)), tuple(bounds)


def unit_stride(dims: Sequence[ViewDim]) -> Scalar:
    """Return the stride of the last dimension that has, as declared, more than one position; 1 if there is none."""
    return next((dim.stride for dim in reversed(dims) if declared(dim.extent) != Const(1)), Const(1))


def declared(node: Scalar) -> Scalar:
    """Return `node` with every tensor dimension and stride replaced by its declared value."""
    def change(inner: Scalar) -> Scalar | None:
        match inner:
            case DimOf(tensor, dim):
                return Const(tensor.shape[dim])
            case StrideOf(tensor, dim):
                return Const(tensor.layout.strides[dim])
            case _:
                return None
    return substitute(node, change)


def as_declared(node: Scalar) -> Scalar:
    """Return `declared(node)`, with axes of known size at their initial extents."""
    def change(inner: Scalar) -> Scalar | None:
        return Const(inner.default) if isinstance(inner, SymbolRef) and inner.default is not None else None
    return substitute(declared(node), change)


def _contiguous_as_declared(position: int, dims: list[ViewDim], unit: Scalar) -> Iterator[Bound]:
    """Yield the bounds of a reshape: the declared dimensions are contiguous, so their run-time extents must equal the declared ones.

    Strides must equal the declared ones, counted in `unit`: the stride of the last of the dimensions where other dimensions stand around.
    """
    extents_declared = [declared(dim.extent) for dim in dims]
    extents = tuple(int(extent.value) for extent in extents_declared if isinstance(extent, Const))
    for dim, extent, stride in zip(dims, extents, Layout.contiguous(extents).strides, strict=True):
        if not isinstance(dim.extent, Const):
            yield Bound(position, dim.extent, Const(extent), Const(extent))
        wanted = mul(unit, Const(stride))
        if extent > 1 and 0 not in extents and not isinstance(dim.stride, Const) and dim.stride != wanted:
            yield Bound(position, dim.stride, wanted, wanted)


def print_view(view: View) -> str:
    """Return the view as source text."""
    text = view.tensor.shown
    rank = view.tensor.rank
    pending: list[str | None] = [None] * rank           # bracket entry of each original dimension
    live = list(range(rank))

    def flush() -> str:
        nonlocal pending
        last = max((k for k, entry in enumerate(pending) if entry is not None), default=-1)
        inner = ", ".join(entry or ":" for entry in pending[:last + 1])
        return f"{text}[{inner}]" if inner else text

    for position, step in enumerate(view.steps):
        match step:
            case Pick(dim, index) if pending[live[dim]] is None:
                pending[live.pop(dim)] = print_scalar(index)
            case Cut(dim, start, stop, by) if pending[live[dim]] is None:
                pending[live[dim]] = _print_slice(start, stop, by, _extent_before(view, position, dim))
            case _:
                text = flush()
                match step:
                    case Clip(limits):
                        text += f".clip({', '.join(map(str, limits))})"
                        rank = len(limits)
                    case Permute(order):
                        text += ".T" if order == tuple(reversed(range(len(order)))) else f".transpose{order}"
                        rank = len(order)
                    case Reshape(shape):
                        before = place_of(View(view.tensor, view.steps[:position])).dims
                        begin, end = step.span(len(before))
                        around = tuple(print_scalar(declared(dim.extent)) for dim in before)
                        text += f".reshape({', '.join((*around[:begin], *map(str, shape), *around[end:]))})"
                        rank = begin + len(shape) + len(before) - end
                    case _:
                        rank = len(live)
                pending, live = [None] * rank, list(range(rank))
                if isinstance(step, Pick):
                    pending[live.pop(step.dim)] = print_scalar(step.index)
                elif isinstance(step, Cut):
                    pending[live[step.dim]] = _print_slice(step.start, step.stop, step.step, _extent_before(view, position, step.dim))
    return flush()


def _extent_before(view: View, position: int, dim: int) -> Scalar:
    """Return the extent of a dimension before a step, at which a slice's stop is not printed."""
    return place_of(View(view.tensor, view.steps[:position])).dims[dim].extent


def _print_slice(start: Scalar, stop: Scalar, by: int, whole: Scalar) -> str:
    low = "" if start == Const(0) else print_scalar(start)
    high = "" if stop == whole else print_scalar(stop)
    return f"{low}:{high}" + (f":{by}" if by != 1 else "")
