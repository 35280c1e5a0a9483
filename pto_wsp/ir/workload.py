"""Workload IR: which tasks exist, on which data, in which program order.

A workload is the control tree of `ir/flow.py` with tasks in `Do`. Nodes are frozen values that compare by structure; spans take no part.
Nodes hold the channels, events and fresh tensors themselves, so that a part of a workload can be read, and put into another, alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from pto_wsp import doors
from pto_wsp.ir.flow import (
    Branch,
    Choice,
    Consume,
    Do,
    Flow,
    Loop,
    Pipeline,
    Process,
    Receive,
    Send,
    Sequence,
    Sides,
    evaluations,
    leaves,
    walk,
)
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.mesh import OnRank
from pto_wsp.ir.scalar import Scalar
from pto_wsp.ir.view import View
from pto_wsp.source import UNKNOWN, Span
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
    """One kernel call: as many tasks as the loops around it have iterations. `handle` names it for `after=`, `label` for people.

    `on`: the rank of a mesh that it runs on, None in a workload without a mesh.
    """

    kernel: Kernel
    index: tuple[Scalar, ...]
    args: tuple[Arg, ...]
    handle: int
    after: tuple[int, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    label: str = ""
    on: OnRank | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    """The body was made for the declared extent of a tensor's dimension, which it read as a number: no other may be bound."""

    tensor: TensorRef
    dim: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Axis:
    """The name of a loop's axis: the user's name ("" for none) and the kind, e.g. Dense[4].

    `tensors`: those that say how far it goes and where it leads, in the order in which the axis was made of them; a run that binds the
    axis anew binds them. `rows`: how many rows such an axis has.
    """

    name: str = ""
    label: str = ""
    tensors: tuple[TensorRef, ...] = ()
    rows: Scalar | None = None


@dataclass(frozen=True, slots=True)
class WorkloadNote:
    """What a workload adds to a control node: the axis of a `Loop`; the axis without a name of any other node."""

    axis: Axis = Axis()


@dataclass(frozen=True, slots=True)
class ChannelRef:
    """A channel of a pipeline: how many tokens it holds between a send and a receive, 0 for rendezvous.

    `initial`: the numbers of each token that it begins with; the only process that sends to it sends them first.
    """

    id: int
    name: str
    depth: int
    initial: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class EventRef:
    """An event of a pipeline."""

    id: int
    name: str


Leaf: TypeAlias = Task | Fixed
Item: TypeAlias = Flow[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
Body: TypeAlias = Sequence[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadLoop: TypeAlias = Loop[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadBranch: TypeAlias = Branch[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadChoice: TypeAlias = Choice[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadSides: TypeAlias = Sides[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadSend: TypeAlias = Send[WorkloadNote, ChannelRef]
WorkloadReceive: TypeAlias = Receive[ChannelRef]
WorkloadConsume: TypeAlias = Consume[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadProcess: TypeAlias = Process[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]
WorkloadPipeline: TypeAlias = Pipeline[Leaf, WorkloadNote, ChannelRef, EventRef, TensorRef]


@dataclass(frozen=True, slots=True)
class Workload:
    """A whole workload: its name is that of the function, or of how it was put together."""

    name: str
    body: Body

    def __str__(self) -> str:
        return str(doors.late_module("pto_wsp.ir.print_ir").print_ir(self))


def tasks(item: Item) -> Iterator[Task]:
    """Yield the task sites of an item in program order."""
    return (leaf for leaf in leaves(item) if isinstance(leaf, Task))


def waiting(item: Item) -> Iterator[Task | WorkloadSend]:
    """Yield what may wait for tasks, in program order: tasks and sends."""
    for inner in walk(item):
        match inner:
            case Do(Task() as task):
                yield task
            case Send():
                yield inner
            case _:
                pass


def evaluated(item: Item) -> tuple[object, ...]:
    """Return the scalars, and the nodes that hold scalars, that an item evaluates itself, in the order of evaluation."""
    if isinstance(item, Do):
        return (item.leaf.index, item.leaf.args) if isinstance(item.leaf, Task) else ()
    return tuple(scalar for each in evaluations(item) for scalar in each.scalars)
