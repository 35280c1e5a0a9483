"""Spell values of a kernel as Python: the tile that holds an array of any rank, another folding of it, and parts of it.

    x [2, 16, 64] as a tile [32, 64]        refolded to keep matrices:  pto.reshape(x, (2, 16, 64))
    x[:, 0]       of a tile [32, 64]        a column, x[:, 0:1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from math import prod

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import MAX_ARGS
from pto_wsp.ir.scalar import Const, Scalar, add, minimum, sub
from pto_wsp.ir.tensor_function import ArrayStep, Flip, Insert, Refold, TileCut
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.flatten import Dims, ExtentLimits, Folding, NoTile, ValueDim, usual
from pto_wsp.values import dataclass


class Behind(Enum):
    """What the lanes hold that are not there."""

    ZERO = "0"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class KernelValue:
    """A value of a kernel: its text, its dimensions, their folding to a tile, and the padding behind short dimensions.

    `load`: the call that brings the value from memory, where the text is a name for just that: it may be called with another `fill`.
    """

    text: str
    dims: Dims
    folding: Folding
    dtype: DType
    behind: Behind = Behind.ANYTHING
    load: str = ""

    def filled(self, number: str) -> KernelValue | None:
        """Return the value loaded again with a number in the lanes that are not there; None for one that is no load."""
        if not self.load or not self.text.isidentifier() or "valid=" not in self.load:
            return None
        return replace(self, text=f"{self.load.removesuffix(')')}, fill={number})", load="")

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """The extents of the tile."""
        return self.folding.tile_shape(self.dims)

    @property
    def is_name(self) -> bool:
        """Whether the text is a name."""
        return self.text.isidentifier()


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as Python text."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def reshaped(value: KernelValue, dims: Dims, folding: Folding) -> KernelValue:
    """Return a value with other dimensions of as many elements.

    Raises: NoTile for a stack of too many tiles, or one whose number of tiles is not known.
    """
    made = replace(value, dims=dims, folding=folding)
    if made.tile_shape == value.tile_shape:
        return made
    if len(made.tile_shape) > 2:
        leading = dims[:folding.first]
        if prod(dim.limit for dim in leading) > MAX_ARGS or any(dim.short for dim in leading):
            raise NoTile("more than two axes of a tile that cannot be merged", "cut all but two of the axes into tiles of 1")
    text = (f"pto.reshape({value.text}, {shape_text(made.tile_shape)})" if len(value.tile_shape) == len(made.tile_shape) == 2
            else f"{value.text}.reshape{shape_text(made.tile_shape)}")
    return replace(made, text=text)


def refolded(value: KernelValue, folding: Folding) -> KernelValue:
    """Return a value in another folding."""
    return reshaped(value, value.dims, folding)


def transposed(value: KernelValue, dims: Dims, folding: Folding) -> KernelValue:
    """Return the value with rows and columns exchanged, which are then `dims` in `folding`."""
    text = f"pto.transpose({value.text})" if len(value.tile_shape) == 2 else f"{value.text}.mT"
    return replace(value, text=text, dims=dims, folding=folding)


def arranged(value: KernelValue, order: Sequence[int], dims: Dims) -> KernelValue:
    """Return a value whose dimensions above 1 come in another order, as `dims`: order[k] is where the k-th of these stands now.

    Raises: NoTile for an order that no transposition gives.
    """
    places = [place for place, dim in enumerate(dims) if dim.limit > 1]
    n = len(order)
    if list(order) == sorted(order):
        above = [place for place, dim in enumerate(value.dims) if dim.limit > 1]
        rows = sum(1 for place in above if place < value.folding.second)
        leading = sum(1 for place in above if place < value.folding.first)
        return reshaped(value, dims, Folding(_place(places, leading, dims), _place(places, rows, dims)))
    shift = order.index(0)
    if list(order) == [*range(n - shift, n), *range(n - shift)]:
        split = n - shift                       # 0 .. split - 1 are rows now and columns then
        compact = tuple(dim for dim in value.dims if dim.limit > 1)
        flat = reshaped(replace(value, dims=compact, folding=_compact(value)), compact, Folding(0, split))
        return transposed(flat, dims, Folding(0, _place(places, shift, dims)))
    if list(order[:-2]) == list(range(n - 2)) and list(order[-2:]) == [n - 1, n - 2]:
        compact = tuple(dim for dim in value.dims if dim.limit > 1)
        flat = reshaped(replace(value, dims=compact, folding=_compact(value)), compact, Folding(n - 2, n - 1))
        turned = transposed(flat, tuple(dims[place] for place in places), Folding(n - 2, n - 1))
        return reshaped(turned, dims, Folding(_place(places, n - 2, dims), _place(places, n - 1, dims)))
    raise NoTile("axes in an order that no transposition of a tile gives", "cut all but two of the axes into tiles of 1")


def _compact(value: KernelValue) -> Folding:
    """Return the folding of a value without its dimensions of extent 1."""
    return Folding(sum(1 for dim in value.dims[:value.folding.first] if dim.limit > 1),
                   sum(1 for dim in value.dims[:value.folding.second] if dim.limit > 1))


def _place(places: Sequence[int], count: int, dims: Dims) -> int:
    """Return the index of the dimension that has `count` dimensions of extent above 1 before it."""
    if count < len(places):
        return places[count] if count else 0
    return len(dims)


def alone(value: KernelValue, dim: int) -> KernelValue:
    """Return the value with one dimension as all its rows, or as all its columns."""
    folding, dims = value.folding, value.dims
    if dims[dim].limit == 1:
        return value
    rows, columns = range(folding.first, folding.second), range(folding.second, len(dims))
    for group in (rows, columns):
        if dim in group and all(dims[k].limit == 1 for k in group if k != dim):
            return value
    behind = prod(one.limit for one in dims[dim + 1:])
    return refolded(value, Folding(0, dim + 1) if behind > 1 and all(one.limit == 1 for one in dims[:dim])
                    else Folding(0, dim) if behind == 1 else Folding(dim, dim + 1))


def subscript(value: KernelValue, dim: int, text: str) -> str:
    """Return the text of a part of a value along a dimension that is alone among rows or columns."""
    rows = dim < value.folding.second
    leading = "".join(":, " for _ in value.tile_shape[:-2])
    return f"{value.text}[{leading}{text}]" if rows else f"{value.text}[{leading}:, {text}]"


def part(value: KernelValue, step: ArrayStep, limits: ExtentLimits, scalar: Callable[[Scalar], str]) -> KernelValue:
    """Return what a step of a view takes of a value. `scalar`: the text of a scalar in the kernel.

    Raises: NoTile for what a kernel cannot take.
    """
    match step:
        case Pick(dim, index):
            picked = _cut(value, dim, index, add(index, Const(1)), 1, ValueDim(1, Const(1)), scalar)
            return _without(picked, dim)
        case Cut(dim, start, stop, by):
            span = sub(stop, start)
            extent = span if by == 1 else Const(-(-int(span.value) // by)) if isinstance(span, Const) else None
            if extent is None:
                raise NoTile("a slice with a step, whose size is not known", "slice by numbers")
            limit = limits.of(extent)
            if limit is None or (limit != value.dims[dim].limit and extent != Const(limit)):
                raise NoTile("a part of a value that the kernel computes, whose size only the run tells", "store the value first")
            return _cut(value, dim, start, stop, by, ValueDim(limit, extent), scalar)
        case TileCut(dim, start, size):
            own = value.dims[dim]
            if start == Const(0) and size >= own.limit:
                return _with_dim(value, dim, ValueDim(own.limit, minimum(Const(size), own.extent) if own.short else own.extent))
            if own.limit % size and not isinstance(start, Const):
                raise NoTile("a short tile of a value that the kernel computes", "store the value first")
            extent = minimum(Const(size), sub(own.extent, start))
            if isinstance(start, Const) and int(start.value) + size > own.limit:
                size = own.limit - int(start.value)
            return _cut(value, dim, start, add(start, Const(size)), 1, ValueDim(size, extent if own.short else Const(size)), scalar)
        case Permute(order):
            return _permuted(value, order)
        case Insert(dim):
            dims = (*value.dims[:dim], ValueDim(1, Const(1)), *value.dims[dim:])
            first, second = (at + (dim <= at and at > 0 and dim < at) for at in (value.folding.first, value.folding.second))
            return replace(value, dims=dims, folding=Folding(first, second))
        case Flip(dim):
            if value.dims[dim].limit == 1:
                return value
            turned = alone(value, dim)
            if value.dims[dim].short:
                return replace(turned, text=_reversed(turned, dim, scalar), behind=Behind.ANYTHING, load="")
            return replace(turned, text=subscript(turned, dim, "::-1"), load="")
        case Refold(shape):
            dims = limits.dims(shape)
            if prod(dim.limit for dim in dims) != prod(dim.limit for dim in value.dims) or any(
                    dim.short for dim in (*dims[1:], *value.dims[1:])):
                raise NoTile("a reshape of a short tile", "let the axes of the reshape be whole")
            return reshaped(value, dims, usual(len(dims)))


def _reversed(value: KernelValue, dim: int, scalar: Callable[[Scalar], str]) -> str:
    """Return the text of a value in which a dimension, alone among rows or columns, is reversed in the lanes that are there."""
    if len(value.tile_shape) > 2:
        raise NoTile("a short tile of a stack, reversed", "cut all but two of the axes into tiles of 1")
    one, rows = value.dims[dim], dim < value.folding.second
    last = scalar(sub(one.extent, Const(1)))
    lanes = f"pto.iota({(one.limit, 1) if rows else (1, one.limit)}, DType.{DType.I32.name}, {0 if rows else 1})"
    return f"pto.gather({value.text}, pto.maximum({last} - {lanes}, 0), axis={0 if rows else 1})"


def _cut(value: KernelValue, dim: int, start: Scalar, stop: Scalar, by: int, made: ValueDim,
         scalar: Callable[[Scalar], str]) -> KernelValue:
    if value.dims[dim].limit == made.limit:
        return _with_dim(value, dim, made)
    source = alone(value, dim)
    if isinstance(start, Const):
        end = int(start.value) + (made.limit - 1) * by + 1
        text = f"{int(start.value)}:{end}" + (f":{by}" if by != 1 else "")
    else:
        first = scalar(start)
        text = f"{first}:{scalar(add(start, Const(made.limit)))}"
        if by != 1:
            raise NoTile("a slice with a step that starts where only the run tells", "slice by numbers")
    return _with_dim(replace(source, text=subscript(source, dim, text)), dim, made)


def _with_dim(value: KernelValue, dim: int, made: ValueDim) -> KernelValue:
    return replace(value, dims=(*value.dims[:dim], made, *value.dims[dim + 1:]), load="")


def _without(value: KernelValue, dim: int) -> KernelValue:
    folding = value.folding
    return replace(value, dims=(*value.dims[:dim], *value.dims[dim + 1:]),
                   folding=Folding(folding.first - (dim < folding.first), folding.second - (dim < folding.second)))


def _permuted(value: KernelValue, order: Sequence[int]) -> KernelValue:
    dims = tuple(value.dims[k] for k in order)
    above = [k for k, dim in enumerate(value.dims) if dim.limit > 1]
    return arranged(value, [above.index(k) for k in order if value.dims[k].limit > 1], dims)
