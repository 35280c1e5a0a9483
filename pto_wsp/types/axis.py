"""Axes: what a workload's loops walk.

>>> Dense[4]()
Dense[4]
"""

from __future__ import annotations

import itertools
from dataclasses import field
from typing import TypeAlias

import numpy as np

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.symbolic import Symbolic, as_scalar
from pto_wsp.types.tensor import Tensor
from pto_wsp.values import dataclass

_ids = itertools.count(1 << 32)   # apart from the ids of Symbols


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DenseAxis:
    """0 .. extent-1, known when the workload is written."""

    extent: int

    def __repr__(self) -> str:
        return f"Dense[{self.extent}]"


class Dense:
    """`Dense[N]()` is an axis of N positions."""

    def __class_getitem__(cls, extent: object) -> _DenseOf:
        if isinstance(extent, Symbolic):
            raise WorkloadStructureError("Dense takes a number", here(), found=repr(extent), help="DenseDyn(...) takes a Symbol")
        return _DenseOf(_whole(extent, "Dense[N]()"))

    def __new__(cls, *args: object) -> Dense:
        raise WorkloadStructureError("Dense needs its extent in brackets", here(), expected="Dense[4]()",
                                     found=f"Dense({', '.join(map(repr, args))})")


@dataclass(frozen=True, slots=True)
class _DenseOf:
    extent: int

    def __call__(self) -> DenseAxis:
        return DenseAxis(self.extent)

    def __repr__(self) -> str:
        return f"Dense[{self.extent}]"


class DenseDyn:
    """`DenseDyn(n)`: an axis whose extent a run may bind anew; `n` is a Symbol, or the number it starts with."""

    __slots__ = ("extent",)

    def __init__(self, extent: int | Symbolic) -> None:
        if isinstance(extent, Symbolic):
            if not s.scalar_dtype(extent.node).is_integer:
                raise WorkloadStructureError("DenseDyn(n) takes a whole number", here(), found=f"{extent!r}, which is none")
            self.extent: s.Scalar = extent.node
        else:
            self.extent = s.SymbolRef("", next(_ids), default=_whole(extent, "DenseDyn(n)"))

    def __repr__(self) -> str:
        if isinstance(self.extent, s.SymbolRef) and self.extent.default is not None:
            return f"DenseDyn({self.extent.default})"
        return f"DenseDyn({s.print_scalar(self.extent)})"


OuterAxis: TypeAlias = DenseAxis | DenseDyn


class Ragged:
    """`Ragged(outer, lengths)`: rows of different lengths; `ragged[b]` is the axis of row b.

    Shapes: `lengths` is a rank-1 integer Tensor (or array, wrapped without a copy) with one entry a position of `outer`.
    """

    __slots__ = ("lengths", "outer")

    def __init__(self, outer: OuterAxis, lengths: Tensor | np.ndarray[tuple[int, ...], np.dtype[np.integer]]) -> None:
        tensor = lengths if isinstance(lengths, Tensor) else Tensor(lengths)
        if not isinstance(outer, DenseAxis | DenseDyn):
            raise WorkloadStructureError("the outer axis of Ragged is Dense or DenseDyn", here(), found=repr(outer))
        if tensor.rank != 1 or not tensor.dtype.is_integer:
            raise WorkloadStructureError("Ragged takes the lengths as a rank-1 integer tensor", here(),
                                         found=f"rank {tensor.rank}, {tensor.dtype}")
        if isinstance(outer, DenseAxis) and tensor.ref.shape[0] < outer.extent:
            raise WorkloadStructureError("Ragged needs a length for each position of the outer axis", here(),
                                         expected=f"{outer.extent} lengths", found=str(tensor.ref.shape[0]))
        self.outer = outer
        self.lengths = tensor

    def __getitem__(self, position: object) -> RaggedRow:
        return RaggedRow(self, self.lengths.item(position).node)

    def __repr__(self) -> str:
        return f"Ragged({self.outer!r}, {self.lengths.ref.shown})"


@dataclass(frozen=True, slots=True, eq=False)
class RaggedRow:
    """The axis of one row of a `Ragged`."""

    ragged: Ragged
    extent: s.Scalar


@dataclass(frozen=True, slots=True)
class Walk:
    """What a loop does with an axis: start, stop, step, and how the axis is called in types. `source` finds its name."""

    start: s.Scalar
    stop: s.Scalar
    step: s.Scalar
    label: str
    source: object = field(compare=False, repr=False, default=None)


def walk_of(axis: object) -> Walk:
    """Return how to loop over anything that is an axis.

    Raises: W102 for what is none.
    """
    zero, one = s.Const(0), s.Const(1)
    match axis:
        case DenseAxis(extent):
            return Walk(zero, s.Const(extent), one, repr(axis), axis)
        case DenseDyn():
            return Walk(zero, axis.extent, one, "DenseDyn", axis)
        case RaggedRow(ragged, extent):
            return Walk(zero, extent, one, "Ragged", ragged)
        case range():
            if axis.step < 1:
                raise WorkloadStructureError("a loop's range goes upwards", here(), found=repr(axis))
            return Walk(s.Const(axis.start), s.Const(max(axis.start, axis.stop)), s.Const(axis.step), repr(axis), axis)
        case bool() | float() | str():
            pass
        case int() | np.integer():
            return Walk(zero, s.Const(_whole(int(axis), "P(n)")), one, f"Dense[{int(axis)}]", axis)
        case Symbolic():
            if s.scalar_dtype(axis.node).is_integer:
                return Walk(zero, as_scalar(axis), one, s.print_scalar(axis.node), axis)
        case Ragged():
            raise WorkloadStructureError("a Ragged axis is walked row by row", here(), found=repr(axis),
                                         help="loop over the outer axis first: for b in P(batch): for i in P(ragged[b])")
        case _DenseOf():
            raise WorkloadStructureError("the axis is not made yet", here(), expected="Dense[N]()", found=repr(axis))
        case _:
            pass
    raise WorkloadStructureError("this is not an axis", here(), found=f"{type(axis).__name__}: {axis!r:.60}",
                                 expected="Dense[N](), DenseDyn(n), a row of a Ragged, a range, a whole number, or a scalar expression")


def _whole(extent: object, where: str) -> int:
    fits = isinstance(extent, int | np.integer) and not isinstance(extent, bool)
    if not fits or not 0 <= int(extent) < 1 << 63:  # type: ignore[call-overload]
        raise WorkloadStructureError(f"{where} takes a whole number >= 0 that fits 64 bits", here(), found=repr(extent))
    return int(extent)  # type: ignore[call-overload, no-any-return]
