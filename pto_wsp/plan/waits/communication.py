"""What in a plan uses channels and events, and who records what."""

from __future__ import annotations

from pto_wsp.plan.model import AwaitEvent, Consume, Item, Pipeline, Receive, RecordEvent, Send
from pto_wsp.plan.walk import items_in


def communicates(item: Item) -> bool:
    """Tell whether an item uses channels or events of a pipeline around it: whether it may have to wait for other processes."""
    return any(isinstance(inner, Send | Receive | Consume | RecordEvent | AwaitEvent) for inner in items_in(item))


def recorder_of(pipeline: Pipeline, event: int) -> int:
    """Return the stream that records an event of a pipeline, 0 for none."""
    return next((process.stream for process in pipeline.processes for item in items_in(process.body)
                 if isinstance(item, RecordEvent) and item.event == event), 0)
