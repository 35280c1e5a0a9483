"""Workload IR: which tasks exist, on which data, in which program order.

A workload is a tree of blocks, loops and tasks. Nodes are frozen values that compare by structure; spans take no part. Program order
is the meaning: items of a `Block` stand in the order written, only iterations of an unordered `Loop` and the sides of a `Combine`
are free.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from pto_wsp.expr.kernel import Kernel
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.scalar import Scalar, Var
from pto_wsp.types.view import View
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class ViewArg:
    """A kernel's Tile or Tensor parameter bound to a view."""

    param: str
    view: View
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A kernel's Scalar parameter bound to a scalar expression."""

    param: str
    value: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


Arg: TypeAlias = ViewArg | ScalarArg


@dataclass(frozen=True, slots=True)
class Task:
    """One kernel call: as many tasks as the loops around it have iterations. `handle` names it for `after=`."""

    kernel: Kernel
    index: tuple[Scalar, ...]
    args: tuple[Arg, ...]
    handle: int
    after: tuple[int, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Axis:
    """How a loop's axis is called: the user's name for it ("" when it has none) and its kind, e.g. Dense[4]."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Loop:
    """`for var in P(axis)`, or P.seq(axis) when `ordered`: var takes start, start + step, … below stop."""

    var: Var
    axis: Axis
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    body: Block
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Combine:
    """Sides without an order between them."""

    sides: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Items in program order."""

    items: tuple[Item, ...] = ()


Item: TypeAlias = Task | Loop | Combine | Block


@dataclass(frozen=True, slots=True)
class Workload:
    """A whole workload: its name is that of the function, or of how it was put together."""

    name: str
    body: Block
