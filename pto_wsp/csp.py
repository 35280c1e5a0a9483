"""Processes, channels and events: the names of `pto_wsp` for pipelines, together."""

from pto_wsp.api.pipelines import Process, connect, consume, process, replicate, send
from pto_wsp.trace.workload.pipelines import Channel, Event, query, receive, record, synchronize

__all__ = ["Channel", "Event", "Process", "connect", "consume", "process", "query", "receive", "record", "replicate", "send", "synchronize"]
