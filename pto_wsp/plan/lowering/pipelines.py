"""Lower pipelines: channels, events and processes get numbers, each process a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from pto_wsp.errors import InternalError
from pto_wsp.expr import workload as wl
from pto_wsp.expr.rewrite import outer_nodes
from pto_wsp.plan.lowering.checks import element_checks
from pto_wsp.plan.model import AwaitEvent, Channel, Event, Pipeline, Process, Receive, RecordEvent, Send, Sequence
from pto_wsp.values import dataclass


@dataclass(slots=True)
class Network:
    """The numbering so far. Channels and events are those of one pipeline: another one that uses the same has its own."""

    channels: list[Channel] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    n_streams: int = 1
    n_sites: int = 0
    _channels: dict[int, int] = field(default_factory=dict)    # of the pipeline at hand, by the id of their refs
    _events: dict[int, int] = field(default_factory=dict)

    def site(self) -> int:
        """Return the number of a statement that uses a channel or an event."""
        self.n_sites += 1
        return self.n_sites - 1

    def channel(self, ref: wl.ChannelRef) -> int:
        """Return the number of a channel."""
        if ref.id not in self._channels:
            raise InternalError(f"channel {ref.name} is used outside a pipeline")
        return self._channels[ref.id]

    def event(self, ref: wl.EventRef) -> int:
        """Return the number of an event."""
        if ref.id not in self._events:
            raise InternalError(f"event {ref.name} is used outside a pipeline")
        return self._events[ref.id]

    def pipeline(self, pipeline: wl.Pipeline, block: Callable[[wl.Block], Sequence]) -> Pipeline:
        """Return a pipeline with its channels and events opened; `block` lowers the body of a process."""
        streams: list[int] = []
        for process in pipeline.processes:
            streams.append(self.n_streams)
            self.n_streams += process.replicas
        self._channels, self._events = {}, {}
        for process in pipeline.processes:
            for ref in (*process.consumes, *process.produces):
                if ref.id not in self._channels:
                    self._channels[ref.id] = len(self.channels)
                    self.channels.append(_channel(ref, pipeline, streams))
            for item in outer_nodes(process.body):
                if isinstance(item, wl.Record | wl.Synchronize) and item.event.id not in self._events:
                    self._events[item.event.id] = len(self.events)
                    self.events.append(Event(item.event.name, item.event.id))
        opened, events = tuple(self._channels.values()), tuple(self._events.values())
        processes = tuple(
            Process(process.name, block(process.body), tuple(map(self.channel, process.consumes)),
                    tuple(map(self.channel, process.produces)), process.replicas, stream, process.span)
            for process, stream in zip(pipeline.processes, streams, strict=True))
        return Pipeline(processes, opened, events, pipeline.span)

    def send(self, send: wl.Send) -> Send:
        """Return a send with its checks; whoever calls notes its scalars."""
        checks = tuple(dict.fromkeys(check for value in send.payload for check in element_checks(value, send.span)))
        return Send(self.channel(send.channel), send.payload, send.after, self.site(), checks, span=send.span)

    def receive(self, receive: wl.Receive) -> Receive:
        """Return a receive."""
        return Receive(self.channel(receive.channel), receive.vars, self.site(), receive.span)

    def record(self, record: wl.Record) -> RecordEvent:
        """Return a record of an event."""
        return RecordEvent(self.event(record.event), self.site(), record.span)

    def synchronize(self, wait: wl.Synchronize) -> AwaitEvent:
        """Return a wait for an event."""
        return AwaitEvent(self.event(wait.event), self.site(), wait.span)


def _channel(ref: wl.ChannelRef, pipeline: wl.Pipeline, streams: list[int]) -> Channel:
    def ends(of: Callable[[wl.Process], tuple[wl.ChannelRef, ...]]) -> tuple[int, ...]:
        return tuple(stream + replica for process, stream in zip(pipeline.processes, streams, strict=True)
                     if any(each.id == ref.id for each in of(process)) for replica in range(process.replicas))

    sent = next((len(item.payload) for process in pipeline.processes for item in outer_nodes(process.body)
                 if isinstance(item, wl.Send) and item.channel.id == ref.id), 0)
    return Channel(ref.name, ref.depth, sent, ends(lambda process: process.produces), ends(lambda process: process.consumes))
