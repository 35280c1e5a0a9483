"""Workload IR: which tasks exist, on which data, in which program order.

A workload is a tree of blocks, loops and tasks. Nodes are frozen values that compare by structure; spans take no part. Program order
is the meaning: items of a `Block` stand in the order written, only iterations of an unordered `Loop`, the sides of a `Combine` and the
processes of a `Pipeline` are free. A scalar is evaluated where the statement that uses it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Scalar, Var
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
    """One kernel call: as many tasks as the loops around it have iterations. `handle` names it for `after=`."""

    kernel: Kernel
    index: tuple[Scalar, ...]
    args: tuple[Arg, ...]
    handle: int
    after: tuple[int, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Axis:
    """How a loop's axis is called: the user's name for it ("" when it has none) and its kind, e.g. Dense[4].

    `tensors`: those that say how far it goes and where it leads, in the order in which the axis was made of them; a run that binds the
    axis anew binds them. `rows`: how many rows such an axis has.
    """

    name: str
    label: str
    tensors: tuple[TensorRef, ...] = ()
    rows: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Through:
    """What a loop's variable leads to: in each iteration the user's variable `var` is `value`, an element of a sparse row."""

    var: Var
    value: Scalar


@dataclass(frozen=True, slots=True)
class Loop:
    """`for var in P(axis)`, or P.seq(axis) when `ordered`: var takes start, start + step, … below stop.

    `through`: the loop walks a sparse row: `var` is the position in it, and the user's variable is what stands there.
    """

    var: Var
    axis: Axis
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    body: Block
    through: Through | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def known_var(self) -> Var:
        """The variable that the user knows: what stands at the position in a row, else the loop's own."""
        return self.var if self.through is None else self.through.var


@dataclass(frozen=True, slots=True)
class Branch:
    """`with P.when(condition):`, or P.elif_ behind it."""

    condition: Scalar
    body: Block
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """The first branch whose condition holds, else `otherwise`; a condition is evaluated when those before it do not hold."""

    branches: tuple[Branch, ...]
    otherwise: Block


@dataclass(frozen=True, slots=True)
class SetSlot:
    """From here on, in program order, slot number `slot` holds `value`."""

    slot: int
    value: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fresh:
    """`Tensor.empty` made in a body: another tensor each time control comes here, until the body's end."""

    tensor: TensorRef
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fixed:
    """The body was made for the declared extent of a tensor's dimension, which it read as a number: no other may be bound."""

    tensor: TensorRef
    dim: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Combine:
    """Sides without an order between them."""

    sides: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ChannelRef:
    """A channel of a pipeline: how many tokens it holds between a send and a receive, 0 for rendezvous."""

    id: int
    name: str
    depth: int


@dataclass(frozen=True, slots=True)
class EventRef:
    """An event of a pipeline."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Send:
    """Give a token to a channel: it appears when the tasks of the handles in `after` have completed, and carries `payload`."""

    channel: ChannelRef
    payload: tuple[Scalar, ...]
    after: tuple[int, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Receive:
    """Take one token: `vars` are what it carries, to the end of the block."""

    channel: ChannelRef
    vars: tuple[Var, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Consume:
    """Take token after token until the channel is closed and empty; `vars` are what each carries, in `body`."""

    channel: ChannelRef
    vars: tuple[Var, ...]
    body: Block
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Record:
    """The event happens when everything before this in its process has completed."""

    event: EventRef
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Synchronize:
    """What follows waits for the event: the n-th time for its n-th record."""

    event: EventRef
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Process:
    """A part of a pipeline with an order of its own, `replicas` times, and the channels that it takes from and gives to."""

    name: str
    body: Block
    consumes: tuple[ChannelRef, ...] = ()
    produces: tuple[ChannelRef, ...] = ()
    replicas: int = 1
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Processes side by side, ordered by their channels and events alone."""

    processes: tuple[Process, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Items in program order."""

    items: tuple[Item, ...] = ()


Item: TypeAlias = (Task | Loop | Choice | SetSlot | Fresh | Fixed | Combine | Block | Pipeline | Send | Receive | Consume | Record
                   | Synchronize)


@dataclass(frozen=True, slots=True)
class Workload:
    """A whole workload: its name is that of the function, or of how it was put together."""

    name: str
    body: Block


def inner_items(item: Item) -> tuple[Item, ...]:
    """Return the items directly inside an item, in program order."""
    match item:
        case Loop() | Consume():
            return (item.body,)
        case Choice(branches, otherwise):
            return (*(branch.body for branch in branches), otherwise)
        case Combine(parts) | Block(parts):
            return parts
        case Pipeline(processes):
            return tuple(process.body for process in processes)
        case Task() | SetSlot() | Fresh() | Fixed() | Send() | Receive() | Record() | Synchronize():
            return ()


def with_inner(item: Item, change: Callable[[Item], Item]) -> Item:
    """Return an item with `change` applied to the items directly inside; a block must stay one."""
    def block(body: Block) -> Block:
        changed = change(body)
        return changed if isinstance(changed, Block) else Block((changed,))

    match item:
        case Loop() | Consume():
            return replace(item, body=block(item.body))
        case Choice(branches, otherwise):
            return Choice(tuple(replace(branch, body=block(branch.body)) for branch in branches), block(otherwise))
        case Combine(sides):
            return Combine(tuple(block(side) for side in sides))
        case Block(items):
            return Block(tuple(change(inner) for inner in items))
        case Pipeline(processes):
            return replace(item, processes=tuple(replace(process, body=block(process.body)) for process in processes))
        case Task() | SetSlot() | Fresh() | Fixed() | Send() | Receive() | Record() | Synchronize():
            return item


def bound_vars(item: Item) -> tuple[Var, ...]:
    """Return the variables that an item binds: in its body, or (of a `Receive`) to the end of the block around it."""
    match item:
        case Loop(var=var, through=through):
            return (var,) if through is None else (var, through.var)
        case Receive(vars=variables) | Consume(vars=variables):
            return variables
        case _:
            return ()


def own_scalars(item: Item) -> tuple[object, ...]:
    """Return what an item evaluates itself, in the order in which it does: scalars, and nodes that hold them."""
    match item:
        case Task():
            return (item.index, item.args)
        case Loop(start=start, stop=stop, step=step, through=through):
            return (start, stop, step, *(() if through is None else (through.value,)))
        case Choice(branches):
            return tuple(branch.condition for branch in branches)
        case SetSlot(value=value):
            return (value,)
        case Send(payload=payload):
            return payload
        case _:
            return ()
