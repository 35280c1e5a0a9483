"""Regions: the elements of a tensor that a view reaches, a line for each dimension of the tensor.

A position counts along what is left free of the view; each dimension of the tensor is then start + Σ factor · position. Dimensions are
kept apart, so that sizes that are only symbols stay linear. Where a view was reshaped, its old and new positions count the same elements:
an equality between them, with the strides of both shapes.

>>> region_of(View(x, (Pick(0, b), Cut(0, Const(8), Const(16)))))
Region(dims=(Line(start=b, terms=()), Line(start=8, terms=((0, 1),))), extents=(8,), equal=())
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from pto_wsp.types.layout import Layout
from pto_wsp.types.scalar import Const, DimOf, Scalar, add, ceil_div, minimum, mul, sub
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, View, declared
from pto_wsp.values import dataclass

Term: TypeAlias = tuple[int, int]       # number of a position, factor


@dataclass(frozen=True, slots=True)
class Line:
    """start + Σ factor · position."""

    start: Scalar
    terms: tuple[Term, ...]

    def put(self, position: int, start: Scalar, terms: tuple[Term, ...]) -> Line:
        """Return the line with a position replaced by a line of others."""
        factor = next((f for number, f in self.terms if number == position), 0)
        if not factor:
            return self
        rest = tuple(term for term in self.terms if term[0] != position)
        return Line(add(self.start, mul(start, Const(factor))), (*rest, *((number, f * factor) for number, f in terms)))


@dataclass(frozen=True, slots=True)
class Region:
    """The elements at `dims`, for all positions with 0 <= position < its extent at which the lines in `equal` are 0.

    `extents`: of each position, by number; those that no line has are not free any more.
    """

    dims: tuple[Line, ...]
    extents: tuple[Scalar, ...]
    equal: tuple[Line, ...] = ()

    @property
    def is_box(self) -> bool:
        """True where dimensions do not depend on each other."""
        return not self.equal

    def positions(self) -> tuple[int, ...]:
        """Return the numbers of the free positions."""
        return tuple(dict.fromkeys(number for line in (*self.dims, *self.equal) for number, _ in line.terms))


def region_of(view: View) -> Region:
    """Return the elements that a view reaches."""
    rank = view.tensor.rank
    dims = [Line(Const(0), ((k, 1),)) for k in range(rank)]
    extents: list[Scalar] = [DimOf(view.tensor, k) for k in range(rank)]
    equal: list[Line] = []
    free = list(range(rank))                    # the position of each dimension of the view so far

    def put(position: int, start: Scalar, terms: tuple[Term, ...] = ()) -> None:
        dims[:] = [line.put(position, start, terms) for line in dims]
        equal[:] = [line.put(position, start, terms) for line in equal]

    for step in view.steps:
        match step:
            case Pick(dim, index):
                put(free.pop(dim), index)
            case Cut(dim, start, stop, by):
                put(free[dim], start, ((len(extents), by),))
                free[dim] = len(extents)
                span = sub(stop, start)
                extents.append(span if by == 1 else ceil_div(span, Const(by)))
            case Clip(limits):
                for position, limit in zip(free, limits, strict=True):
                    extents[position] = minimum(extents[position], Const(limit))
            case Permute(order):
                free = [free[k] for k in order]
            case Reshape(shape):
                old = tuple(_known(extents[position]) for position in free)
                new = tuple(range(len(extents), len(extents) + len(shape)))
                equal.append(Line(Const(0), (*_counted(free, old, 1), *_counted(new, shape, -1))))
                for position, extent in zip(free, old, strict=True):
                    extents[position] = Const(extent)
                extents.extend(Const(extent) for extent in shape)
                free = list(new)
            case _:
                assert_never(step)
    return Region(tuple(dims), tuple(extents), tuple(equal))


def _counted(positions: list[int] | tuple[int, ...], shape: tuple[int, ...], sign: int) -> tuple[Term, ...]:
    return tuple((position, sign * stride) for position, stride in zip(positions, Layout.contiguous(shape).strides, strict=True))


def _known(extent: Scalar) -> int:
    """A view that is reshaped has the extents that were declared: a check at run time holds it to them."""
    known = declared(extent)
    assert isinstance(known, Const)
    return int(known.value)
