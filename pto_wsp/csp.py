"""Processes, channels and events: the names of `pto_wsp` for pipelines, together."""

from pto_wsp.api.pipelines import Process, connect, consume, process, produce, receive, replicate, send
from pto_wsp.trace.workload.pipelines import Channel, Event, query, record, synchronize
from pto_wsp.trace.workload.rings import Ring

__all__ = [
    "Channel", "Event", "Process", "Ring", "connect", "consume", "process", "produce", "query", "receive", "record", "replicate", "send",
    "synchronize",
]
