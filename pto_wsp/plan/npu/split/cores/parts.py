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

    `rows` is in terms of the whole kernel's parameters. `label`: what parts call it, where that is free; `name` is its own.
    """

    name: str
    label: str
    dtype: DType
    rows: Scalar
    cols: int


Given: TypeAlias = ParamScalar | ParamExtent


@dataclass(frozen=True, slots=True)
class Part:
    """What one core does of a kernel.

    `places`: what each memory parameter is given, a parameter of the whole kernel or a crossing; `scalars`: what each scalar parameter
    is given, in terms of the whole kernel's parameters. Parts that do the same to other crossings have equal kernels.
    """

    kernel: Kernel
    core: Unit
    access: tuple[ParamAccess, ...]
    places: tuple[str, ...]
    scalars: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class SplitKernel:
    """The parts of a kernel in an order in which they may run, and what crosses between them."""

    parts: tuple[Part, ...]
    crossings: tuple[Crossing, ...] = ()
