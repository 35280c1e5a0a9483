"""Functional forms and pipelines: the names of `pto_wsp` that make workloads without a decorated function, together."""

from pto_wsp.api.forms import cond, for_each, parallel_for, select, task
from pto_wsp.api.pipelines import Process, connect, consume, process, receive, replicate, send
from pto_wsp.api.workload import combine, sequential
from pto_wsp.trace.workload.pipelines import Channel, Event, query, record, synchronize

__all__ = [
    "Channel", "Event", "Process", "combine", "cond", "connect", "consume", "for_each", "parallel_for", "process", "query", "receive",
    "record", "replicate", "select", "send", "sequential", "synchronize", "task",
]
