"""What in a plan uses channels and events, and who records what."""

from __future__ import annotations

from pto_wsp.plan.model import AwaitEvent, Consume, Item, Pipeline, Receive, RecordEvent, Send, inner_items


def communicates(item: Item) -> bool:
    """Tell whether an item uses channels or events of a pipeline around it: whether it may have to wait for other processes."""
    match item:
        case Send() | Receive() | Consume() | RecordEvent() | AwaitEvent():
            return True
        case _:
            return any(communicates(inner) for inner in inner_items(item))


def recorder_of(pipeline: Pipeline, event: int) -> int:
    """Return the stream that records an event of a pipeline, 0 for none."""
    def records(item: Item) -> bool:
        return (isinstance(item, RecordEvent) and item.event == event) or any(records(inner) for inner in inner_items(item))

    return next((process.stream for process in pipeline.processes if records(process.body)), 0)
