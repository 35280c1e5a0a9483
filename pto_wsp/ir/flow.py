"""`Flow`: the control tree of workloads, plans and device launches, and the functions that walk and rebuild it.

    Sequence                  a level says what stands in `Do` (`Leaf`), what it adds to a control node (`Note`), and by what it refers to
      Loop b in range(0, B)   a channel, an event and a tensor of a `Fresh`:
        Do(leaf)                workload         Flow[Task | Fixed, WorkloadNote, ChannelRef, EventRef, TensorRef]
        Choice …                plan             Flow[Submit, Precondition, int, int, int], numbers in tables of the plan
                                device launches  Flow[Launch, Precondition, int, int, int]

Program order is the meaning: items of a `Sequence` stand in their order; iterations of an unordered `Loop`, the parts of `Sides` and the
processes of a `Pipeline` are free. A scalar is evaluated where the statement that holds it stands.

Lowering numbers what a workload leaves at 0 or empty: the `site` of a communication, the `stream` of a process, and the `channels` and
`events` that a pipeline opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Generic, TypeAlias, TypeVar, Union

from pto_wsp.ir.scalar import Scalar, SlotValue, Var
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass, replaced

Leaf = TypeVar("Leaf")
Other = TypeVar("Other")
Note = TypeVar("Note")
Channel = TypeVar("Channel")
Event = TypeVar("Event")
Tensor = TypeVar("Tensor")


@dataclass(frozen=True, slots=True)
class Do(Generic[Leaf]):
    """A leaf: a statement of the level's own, such as a task or a launch."""

    leaf: Leaf


@dataclass(frozen=True, slots=True)
class Through(Generic[Note]):
    """The variable that a sparse row's position leads to, read in each iteration of the loop; `note` comes before, in the iteration."""

    var: Var
    value: Scalar
    note: Note


@dataclass(frozen=True, slots=True)
class Loop(Generic[Leaf, Note, Channel, Event, Tensor]):
    """Run `body` for var in range(start, stop, step); the bounds are evaluated once. `ordered`: iterations run one after the other.

    `through`: the loop walks a sparse row: `var` is the position in the row, and the user's variable is the element there.
    """

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    body: Sequence[Leaf, Note, Channel, Event, Tensor]
    note: Note
    through: Through[Note] | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def known_var(self) -> Var:
        """The variable that the user knows: the element at the position in a row, else the loop's own."""
        return self.var if self.through is None else self.through.var

    @property
    def bound(self) -> tuple[Var, ...]:
        """The variables whose values differ between iterations."""
        return (self.var,) if self.through is None else (self.var, self.through.var)


@dataclass(frozen=True, slots=True)
class Branch(Generic[Leaf, Note, Channel, Event, Tensor]):
    """A body with its condition; `note` comes before the condition, and only when no earlier condition held."""

    condition: Scalar
    body: Sequence[Leaf, Note, Channel, Event, Tensor]
    note: Note
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Choice(Generic[Leaf, Note, Channel, Event, Tensor]):
    """The first branch whose condition holds, else `otherwise`; later conditions are not evaluated."""

    branches: tuple[Branch[Leaf, Note, Channel, Event, Tensor], ...]
    otherwise: Sequence[Leaf, Note, Channel, Event, Tensor]

    @property
    def bodies(self) -> tuple[Sequence[Leaf, Note, Channel, Event, Tensor], ...]:
        """The bodies of the branches, then `otherwise`: one of these runs."""
        return (*(branch.body for branch in self.branches), self.otherwise)


class Silent:
    """Base of the statements without tasks and without bodies: slots, tensors, tokens, events."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SetSlot(Silent, Generic[Note]):
    """From here on, in program order, slot number `slot` of the orchestrator holds `value`."""

    slot: int
    value: Scalar
    note: Note
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fresh(Silent, Generic[Note, Tensor]):
    """Allocate a new tensor at each execution of the statement; the tensor lives to the end of the enclosing sequence.

    `sizes`: extents of the tensor, evaluated after the note; () for the declared extents.
    """

    tensor: Tensor
    note: Note
    sizes: tuple[Scalar, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Send(Generic[Note, Channel]):
    """Send a token with the values `payload` to a channel, once the tasks of the handles in `after` have completed."""

    channel: Channel
    payload: tuple[Scalar, ...]
    note: Note
    after: tuple[int, ...] = ()
    site: int = 0
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Receive(Generic[Channel]):
    """Take one token from a channel and bind its values to variables, to the end of the enclosing sequence."""

    channel: Channel
    vars: tuple[Var, ...]
    site: int = 0
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Consume(Generic[Leaf, Note, Channel, Event, Tensor]):
    """Take tokens in order until the channel is closed and empty, and run `body` for each token."""

    channel: Channel
    vars: tuple[Var, ...]
    body: Sequence[Leaf, Note, Channel, Event, Tensor]
    site: int = 0
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RecordEvent(Generic[Event]):
    """An event happens when everything before this in its process has completed."""

    event: Event
    site: int = 0
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AwaitEvent(Generic[Event]):
    """Delay the following items of the process until the event: the n-th execution waits for the n-th record of the event."""

    event: Event
    site: int = 0
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Process(Generic[Leaf, Note, Channel, Event, Tensor]):
    """A stream of its own, `replicas` times; `stream` is the number of the first, 0 being the program around all pipelines."""

    name: str
    body: Sequence[Leaf, Note, Channel, Event, Tensor]
    consumes: tuple[Channel, ...] = ()
    produces: tuple[Channel, ...] = ()
    replicas: int = 1
    stream: int = 0
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pipeline(Generic[Leaf, Note, Channel, Event, Tensor]):
    """Concurrent processes, with channels and events that are new at each execution."""

    processes: tuple[Process[Leaf, Note, Channel, Event, Tensor], ...]
    channels: tuple[Channel, ...] = ()
    events: tuple[Event, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sides(Generic[Leaf, Note, Channel, Event, Tensor]):
    """Sequences without an order between them."""

    sides: tuple[Sequence[Leaf, Note, Channel, Event, Tensor], ...]


@dataclass(frozen=True, slots=True)
class Sequence(Generic[Leaf, Note, Channel, Event, Tensor]):
    """Items in program order."""

    items: tuple[Flow[Leaf, Note, Channel, Event, Tensor], ...] = ()


# `|` has no parameters at run time
Communication: TypeAlias = Union[       # noqa: UP007
    Consume[Leaf, Note, Channel, Event, Tensor], Send[Note, Channel], Receive[Channel], RecordEvent[Event], AwaitEvent[Event]]
Flow: TypeAlias = Union[       # noqa: UP007
    Do[Leaf], Loop[Leaf, Note, Channel, Event, Tensor], Choice[Leaf, Note, Channel, Event, Tensor], SetSlot[Note], Fresh[Note, Tensor],
    Sides[Leaf, Note, Channel, Event, Tensor], Sequence[Leaf, Note, Channel, Event, Tensor], Pipeline[Leaf, Note, Channel, Event, Tensor],
    Send[Note, Channel], Receive[Channel], Consume[Leaf, Note, Channel, Event, Tensor], RecordEvent[Event], AwaitEvent[Event]]

SilentItem: TypeAlias = Union[SetSlot[Note], Fresh[Note, Tensor]]       # noqa: UP007
Evaluating: TypeAlias = Union[       # noqa: UP007
    Loop[Leaf, Note, Channel, Event, Tensor], Branch[Leaf, Note, Channel, Event, Tensor], SetSlot[Note], Send[Note, Channel],
    Fresh[Note, Tensor]]


@dataclass(frozen=True, slots=True)
class Evaluation(Generic[Leaf, Note, Channel, Event, Tensor]):
    """A node with the scalars that control evaluates on arrival, after the checks and waits of the note. `span`: the user's line."""

    node: Evaluating[Leaf, Note, Channel, Event, Tensor] | Through[Note]
    scalars: tuple[Scalar, ...]
    span: Span


def children(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> tuple[Flow[Leaf, Note, Channel, Event, Tensor], ...]:
    """Return the items directly inside an item, in program order."""
    match item:
        case Loop(body=body) | Consume(body=body):
            return (body,)
        case Choice():
            return item.bodies
        case Sides(parts) | Sequence(parts):
            return parts
        case Pipeline(processes):
            return tuple(process.body for process in processes)
        case _:
            return ()


def walk(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> Iterator[Flow[Leaf, Note, Channel, Event, Tensor]]:
    """Yield an item and every item inside, parents first, in program order."""
    yield item
    for inner in children(item):
        if isinstance(inner, Do):      # most items
            yield inner
        else:
            yield from walk(inner)


def leaves(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> Iterator[Leaf]:
    """Yield the leaves of an item in program order."""
    return (inner.leaf for inner in walk(item) if isinstance(inner, Do))


def bound_vars(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> tuple[Var, ...]:
    """Return the variables that an item binds: in its body, or (of a `Receive`) to the end of the sequence around it."""
    match item:
        case Loop():
            return item.bound
        case Receive(vars=variables) | Consume(vars=variables):
            return variables
        case _:
            return ()


def evaluations(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> tuple[Evaluation[Leaf, Note, Channel, Event, Tensor], ...]:
    """Return the evaluations of an item in order of execution, without those of its leaf and of the items inside."""
    match item:
        case Loop(start=start, stop=stop, step=step, through=through, span=span):
            bounds = Evaluation(item, (start, stop, step), span)
            return (bounds,) if through is None else (bounds, Evaluation(through, (through.value,), span))
        case Choice(branches):
            return tuple(Evaluation(branch, (branch.condition,), branch.span) for branch in branches)
        case SetSlot(value=value):
            return (Evaluation(item, (value,), item.span),)
        case Send(payload=payload):
            return (Evaluation(item, payload, item.span),)
        case Fresh(sizes=sizes) if sizes:
            return (Evaluation(item, sizes, item.span),)
        case _:
            return ()


def with_notes(item: Flow[Leaf, Note, Channel, Event, Tensor],
               change: Callable[[Note, tuple[Scalar, ...]], Note],
               ) -> Flow[Leaf, Note, Channel, Event, Tensor]:
    """Return an item with `change` applied to each note of its own, and to the scalars that are evaluated behind it."""
    match item:
        case Loop(through=through):
            inside = None if through is None else replace(through, note=change(through.note, (through.value,)))
            return replace(item, note=change(item.note, (item.start, item.stop, item.step)), through=inside)
        case Choice(branches):
            return replace(item, branches=tuple(replace(branch, note=change(branch.note, (branch.condition,))) for branch in branches))
        case SetSlot(value=value):
            return replace(item, note=change(item.note, (value,)))
        case Send(payload=payload):
            return replace(item, note=change(item.note, payload))
        case Fresh(sizes=sizes) if sizes:
            return replace(item, note=change(item.note, sizes))
        case _:
            return item


def assignments(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> tuple[tuple[SlotValue, Scalar], ...]:
    """Return the slots that an item itself sets for what follows in program order, each with its value."""
    return ((SlotValue(item.slot), item.value),) if isinstance(item, SetSlot) else ()


def slots_set(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> dict[int, Span]:
    """Return the slots that are set in an item, each with the first line that does."""
    first_lines: dict[int, Span] = {}
    for inner in walk(item):
        for place, _ in assignments(inner):
            first_lines.setdefault(place.slot, evaluations(inner)[0].span)
    return first_lines


def communicates(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> bool:
    """Tell whether an item uses channels or events of a pipeline around it: whether it may have to wait for other processes."""
    return any(isinstance(inner, Send | Receive | Consume | RecordEvent | AwaitEvent) for inner in walk(item))


def converted(item: Flow[Leaf, Note, Channel, Event, Tensor],
              leaf: Callable[[Leaf], Flow[Other, Note, Channel, Event, Tensor]],
              body: Callable[[Sequence[Leaf, Note, Channel, Event, Tensor]], Sequence[Other, Note, Channel, Event, Tensor]],
              ) -> Flow[Other, Note, Channel, Event, Tensor]:
    """Return an item with other leaves: `leaf` converts a leaf, `body` each body directly inside; a sequence is itself the body."""
    match item:
        case Do():
            return leaf(item.leaf)
        case Sequence():
            return body(item)
        case Loop():
            return Loop(item.var, item.start, item.stop, item.step, item.ordered, body(item.body), item.note, item.through, item.span)
        case Consume():
            return Consume(item.channel, item.vars, body(item.body), item.site, item.span)
        case Choice(branches, otherwise):
            return Choice(tuple(Branch(each.condition, body(each.body), each.note, each.span) for each in branches), body(otherwise))
        case Sides(sides):
            return Sides(tuple(map(body, sides)))
        case Pipeline(processes):
            parts = tuple(Process(each.name, body(each.body), each.consumes, each.produces, each.replicas, each.stream, each.span)
                          for each in processes)
            return Pipeline(parts, item.channels, item.events, item.span)
        case SetSlot() | Fresh() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return item


def with_bodies(item: Flow[Leaf, Note, Channel, Event, Tensor],
                change: Callable[[Sequence[Leaf, Note, Channel, Event, Tensor]], Sequence[Leaf, Note, Channel, Event, Tensor]],
                ) -> Flow[Leaf, Note, Channel, Event, Tensor]:
    """Return an item with `change` applied to each body directly inside, a leaf as it is; a sequence is itself the body."""
    return item if isinstance(item, Do) else converted(item, Do, change)


def rewrite(body: Sequence[Leaf, Note, Channel, Event, Tensor],
            change: Callable[[Flow[Leaf, Note, Channel, Event, Tensor]], Flow[Leaf, Note, Channel, Event, Tensor]],
            ) -> Sequence[Leaf, Note, Channel, Event, Tensor]:
    """Return a sequence with `change` applied to every item that is no sequence, parents first, in program order.

    A sequence that `change` returns stands as it is: nothing in it is changed again.
    """
    def inside(inner: Sequence[Leaf, Note, Channel, Event, Tensor]) -> Sequence[Leaf, Note, Channel, Event, Tensor]:
        return replace(inner, items=tuple(map(one, inner.items)))

    def one(item: Flow[Leaf, Note, Channel, Event, Tensor]) -> Flow[Leaf, Note, Channel, Event, Tensor]:
        if isinstance(item, Sequence):
            return inside(item)
        changed = change(item)
        return changed if isinstance(changed, Sequence) else with_bodies(changed, inside)

    return inside(body)


def rewrite_leaves(body: Sequence[Leaf, Note, Channel, Event, Tensor],
                   change: Callable[[Leaf], Leaf]) -> Sequence[Leaf, Note, Channel, Event, Tensor]:
    """Return a sequence with `change` applied to every leaf, in program order; an item whose leaf stays is the same object."""
    return rewrite(body, lambda item: replaced(item, leaf=change(item.leaf)) if isinstance(item, Do) else item)
