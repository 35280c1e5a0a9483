"""A kernel as the parts that it runs in: one core each, with what they hand on to each other."""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entry import Unit
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import ParamExtent, ParamScalar, Scalar
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Crossing:
    """Memory in which a part hands values on: enough rows for each turn of the loops that they are made in.

    `rows` is in terms of the whole kernel's parameters.
    """

    name: str
    dtype: DType
    rows: Scalar
    cols: int


Given: TypeAlias = ParamScalar | ParamExtent


@dataclass(frozen=True, slots=True)
class Part:
    """What one core does of a kernel. Its memory parameters bear the names of the whole kernel's, or of crossings.

    `scalars`: what each scalar parameter is given, in terms of the whole kernel's parameters.
    """

    kernel: Kernel
    core: Unit
    access: tuple[ParamAccess, ...]
    scalars: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class SplitKernel:
    """The parts of a kernel in an order in which they may run, and what crosses between them."""

    parts: tuple[Part, ...]
    crossings: tuple[Crossing, ...] = ()
