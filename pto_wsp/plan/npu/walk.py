"""The launches of a plan for the NPU, in program order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from pto_wsp.plan.npu.model import Block, Launch, NpuItem, Repeat, Scope, Unordered


def launches_of(item: NpuItem) -> Iterator[Launch]:
    """Yield every launch of an item."""
    return (launch for launch, _ in launches_within(item))


def launches_within(item: NpuItem, loops: tuple[Repeat, ...] = ()) -> Iterator[tuple[Launch, tuple[Repeat, ...]]]:
    """Yield every launch of an item with the loops around it, outermost first."""
    match item:
        case Launch():
            yield item, loops
        case Repeat(body=body):
            yield from launches_within(body, (*loops, item))
        case Scope(body=body):
            yield from launches_within(body, loops)
        case Unordered(parts) | Block(parts):
            for part in parts:
                yield from launches_within(part, loops)
        case _:
            assert_never(item)
