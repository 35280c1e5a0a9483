"""Axes of one extent: known when the workload is written (`Dense`), or bound by each run (`DenseDyn`).

>>> Dense[4]()
Dense[4]
"""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic
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

    def __class_getitem__(cls, extent: object) -> DenseOf:
        if isinstance(extent, Symbolic):
            raise WorkloadStructureError("Dense takes a number", here(), found=repr(extent), help="DenseDyn(...) takes a Symbol")
        return DenseOf(whole(extent, "Dense[N]()"))

    def __new__(cls, *args: object) -> Dense:
        raise WorkloadStructureError("Dense needs its extent in brackets", here(), expected="Dense[4]()",
                                     found=f"Dense({', '.join(map(repr, args))})")


@dataclass(frozen=True, slots=True)
class DenseOf:
    """`Dense[N]`, which makes an axis when it is called."""

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
            self.extent = s.SymbolRef("", next(_ids), default=whole(extent, "DenseDyn(n)"))

    def __repr__(self) -> str:
        if isinstance(self.extent, s.SymbolRef) and self.extent.default is not None:
            return f"DenseDyn({self.extent.default})"
        return f"DenseDyn({print_scalar(self.extent)})"


OuterAxis: TypeAlias = DenseAxis | DenseDyn


def extent_of(axis: OuterAxis) -> s.Scalar:
    """Return how many positions an axis has."""
    return s.Const(axis.extent) if isinstance(axis, DenseAxis) else axis.extent


def known_extent(axis: OuterAxis) -> int | None:
    """Return how many positions an axis has, or starts with; None for a Symbol's."""
    match extent_of(axis):
        case s.Const(value):
            return int(value)
        case s.SymbolRef(default=default):
            return default
        case _:
            return None


def whole(extent: object, where: str) -> int:
    """Return a whole number >= 0.

    Raises: W102 for anything else.
    """
    fits = isinstance(extent, int | np.integer) and not isinstance(extent, bool)
    if not fits or not 0 <= int(extent) < 1 << 63:  # type: ignore[call-overload]
        raise WorkloadStructureError(f"{where} takes a whole number >= 0 that fits 64 bits", here(), found=repr(extent))
    return int(extent)  # type: ignore[call-overload, no-any-return]
