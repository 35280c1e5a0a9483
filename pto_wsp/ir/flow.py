"""`Flow`: the control tree of workloads, plans and device launches, and the functions that walk and rebuild it.

    Sequence                        a level says what stands in `Do` (`Leaf`), and what it adds to a control node (`Note`):
      Loop b in range(0, B)           plan            Flow[Submit, Precondition]
        Do(leaf)                      device launches Flow[Launch, Precondition]
        Choice …

Program order is the meaning: items of a `Sequence` stand in their order; iterations of an unordered `Loop`, the parts of `Sides` and the
processes of a `Pipeline` are free. A scalar is evaluated where the statement that holds it stands.

Channels and events are numbers in tables of the level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Generic, TypeAlias, TypeVar, Union

from pto_wsp.ir.scalar import Scalar, Var
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

Leaf = TypeVar("Leaf")
Note = TypeVar("Note")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Do(Generic[Leaf]):
    """A statement of the level itself: a task, a launch."""

    leaf: Leaf


@dataclass(frozen=True, slots=True)
class Through(Generic[Note]):
    """The variable that a sparse row's position leads to, read in each iteration of the loop; `note` comes before, in the iteration."""

    var: Var
    value: Scalar
    note: Note


@dataclass(frozen=True, slots=True)
class Loop(Generic[Leaf, Note]):
    """Run `body` for var in range(start, stop, step); the bounds are evaluated once. `ordered`: iterations run one after the other.

    `through`: the loop walks a sparse row: `var` is the position in the row, and the user's variable is the element there.
    """

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    body: Sequence[Leaf, Note]
    note: Note
    through: Through[Note] | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def known_var(self) -> Var:
        """The variable that the user knows: the element at the position in a row, else the loop's own."""
        return self.var if self.through is None else self.through.var

    @property
    def bound(self) -> tuple[Var, ...]:
        """The variables that have another value in each iteration."""
        return (self.var,) if self.through is None else (self.var, self.through.var)


@dataclass(frozen=True, slots=True)
class Branch(Generic[Leaf, Note]):
    """A body with its condition; `note` comes before the condition, and only when no earlier condition held."""

    condition: Scalar
    body: Sequence[Leaf, Note]
    note: Note
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Choice(Generic[Leaf, Note]):
    """The first branch whose condition holds, else `otherwise`; later conditions are not evaluated."""

    branches: tuple[Branch[Leaf, Note], ...]
    otherwise: Sequence[Leaf, Note]

    @property
    def bodies(self) -> tuple[Sequence[Leaf, Note], ...]:
        """The bodies of the branches, then `otherwise`: one of these runs."""
        return (*(branch.body for branch in self.branches), self.otherwise)


@dataclass(frozen=True, slots=True)
class SetSlot(Generic[Note]):
    """From here on, in program order, slot number `slot` of the orchestrator holds `value`."""

    slot: int
    value: Scalar
    note: Note
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fresh:
    """Make the tensor of a slot anew: another tensor each time control comes here, until the end of the sequence around."""

    slot: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Send(Generic[Note]):
    """Give a token to a channel once the tasks of the handles in `after` have completed; the token carries `payload`."""

    channel: int
    payload: tuple[Scalar, ...]
    after: tuple[int, ...]
    site: int
    note: Note
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Receive:
    """Take one token from a channel; its variables are bound to the end of the sequence around."""

    channel: int
    vars: tuple[Var, ...]
    site: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Consume(Generic[Leaf, Note]):
    """Take tokens in order until the channel is closed and empty, with `body` for each."""

    channel: int
    vars: tuple[Var, ...]
    body: Sequence[Leaf, Note]
    site: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """An event happens when everything before this in its process has completed."""

    event: int
    site: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AwaitEvent:
    """What follows in the process waits for the event: the n-th time for its n-th record."""

    event: int
    site: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Process(Generic[Leaf, Note]):
    """A stream of its own, `replicas` times; `stream` is the number of the first, 0 being the program around all pipelines."""

    name: str
    body: Sequence[Leaf, Note]
    consumes: tuple[int, ...]
    produces: tuple[int, ...]
    replicas: int
    stream: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pipeline(Generic[Leaf, Note]):
    """Processes side by side, with channels and events (by number) that are new each time control comes here."""

    processes: tuple[Process[Leaf, Note], ...]
    channels: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sides(Generic[Leaf, Note]):
    """Sequences without an order between them."""

    sides: tuple[Sequence[Leaf, Note], ...]


@dataclass(frozen=True, slots=True)
class Sequence(Generic[Leaf, Note]):
    """Items in program order."""

    items: tuple[Flow[Leaf, Note], ...] = ()


Communication: TypeAlias = Send[Note] | Receive | RecordEvent | AwaitEvent      # noqa: UP007: `|` has no parameters at run time
Flow: TypeAlias = Union[       # noqa: UP007
    Do[Leaf], Loop[Leaf, Note], Choice[Leaf, Note], SetSlot[Note], Fresh, Sides[Leaf, Note], Sequence[Leaf, Note], Pipeline[Leaf, Note],
    Send[Note], Receive, Consume[Leaf, Note], RecordEvent, AwaitEvent]


def children(item: Flow[Leaf, Note]) -> tuple[Flow[Leaf, Note], ...]:
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
        case Do() | SetSlot() | Fresh() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return ()


def walk(item: Flow[Leaf, Note]) -> Iterator[Flow[Leaf, Note]]:
    """Yield an item and every item inside, parents first, in program order."""
    yield item
    for inner in children(item):
        yield from walk(inner)


def leaves(item: Flow[Leaf, Note]) -> Iterator[Leaf]:
    """Yield the leaves of an item in program order."""
    return (inner.leaf for inner in walk(item) if isinstance(inner, Do))


def bound_vars(item: Flow[Leaf, Note]) -> tuple[Var, ...]:
    """Return the variables that an item binds: in its body, or (of a `Receive`) to the end of the sequence around it."""
    match item:
        case Loop():
            return item.bound
        case Receive(vars=variables) | Consume(vars=variables):
            return variables
        case _:
            return ()


def communicates(item: Flow[Leaf, Note]) -> bool:
    """Tell whether an item uses channels or events of a pipeline around it: whether it may have to wait for other processes."""
    return any(isinstance(inner, Send | Receive | Consume | RecordEvent | AwaitEvent) for inner in walk(item))


def with_bodies(item: Flow[Leaf, Note], change: Callable[[Sequence[Leaf, Note]], Sequence[Leaf, Note]]) -> Flow[Leaf, Note]:
    """Return an item with `change` applied to each body directly inside; a sequence is itself the body."""
    match item:
        case Loop() | Consume():
            return replace(item, body=change(item.body))
        case Choice(branches, otherwise):
            return Choice(tuple(replace(branch, body=change(branch.body)) for branch in branches), change(otherwise))
        case Sides(sides):
            return Sides(tuple(map(change, sides)))
        case Pipeline(processes):
            return replace(item, processes=tuple(replace(process, body=change(process.body)) for process in processes))
        case Sequence():
            return change(item)
        case Do() | SetSlot() | Fresh() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return item


def rewrite(body: Sequence[Leaf, Note], change: Callable[[Flow[Leaf, Note]], Flow[Leaf, Note]]) -> Sequence[Leaf, Note]:
    """Return a sequence with `change` applied to every item that is no sequence, parents first, in program order.

    A sequence that `change` returns stands as it is: nothing in it is changed again.
    """
    def inside(inner: Sequence[Leaf, Note]) -> Sequence[Leaf, Note]:
        return replace(inner, items=tuple(map(one, inner.items)))

    def one(item: Flow[Leaf, Note]) -> Flow[Leaf, Note]:
        if isinstance(item, Sequence):
            return inside(item)
        changed = change(item)
        return changed if isinstance(changed, Sequence) else with_bodies(changed, inside)

    return inside(body)


def rewrite_leaves(body: Sequence[Leaf, Note], change: Callable[[Leaf], Leaf]) -> Sequence[Leaf, Note]:
    """Return a sequence with `change` applied to every leaf, in program order."""
    return rewrite(body, lambda item: Do(change(item.leaf)) if isinstance(item, Do) else item)
