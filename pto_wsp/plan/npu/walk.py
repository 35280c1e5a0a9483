"""The items and launches of a plan for the NPU, in program order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send, SetSlot
from pto_wsp.plan.npu.model import Block, Drain, Fork, Launch, Network, NpuItem, Repeat, Scope, Unordered

Around: TypeAlias = Repeat | Fork | Drain | Network      # what makes it depend on a run how often something inside is done


def inner_items(item: NpuItem) -> tuple[NpuItem, ...]:
    """Return the items directly inside an item, in program order."""
    match item:
        case Repeat(body=body) | Scope(body=body) | Drain(body=body):
            return (body,)
        case Fork():
            return item.bodies
        case Unordered(parts) | Block(parts):
            return parts
        case Network(stages):
            return tuple(stage.body for stage in stages)
        case Launch() | SetSlot() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return ()


def items_of(item: NpuItem) -> Iterator[NpuItem]:
    """Yield an item and every one inside it, parents first."""
    yield item
    for inner in inner_items(item):
        yield from items_of(inner)


def communicates(item: NpuItem) -> bool:
    """Tell whether a process that does an item may have to wait for others in it."""
    return any(isinstance(inner, Drain | Send | Receive | RecordEvent | AwaitEvent) for inner in items_of(item))


def launches_of(item: NpuItem) -> Iterator[Launch]:
    """Yield every launch of an item."""
    return (inner for inner in items_of(item) if isinstance(inner, Launch))


def launches_within(item: NpuItem, around: tuple[Around, ...] = ()) -> Iterator[tuple[Launch, tuple[Around, ...]]]:
    """Yield every launch of an item with the loops and forks around it, outermost first."""
    if isinstance(item, Launch):
        yield item, around
    inside = (*around, item) if isinstance(item, Repeat | Fork | Drain | Network) else around
    for inner in inner_items(item):
        yield from launches_within(inner, inside)
