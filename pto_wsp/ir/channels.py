"""Model channels and events while processes run: turns, slots, closing. `csrc/include/pto_channel.h` is the same in C.

Tokens are numbered from 0 in the order of their sends. Producers send in fixed round-robin order of declaration, without those that have
ended; consumers receive likewise. Send number k needs slot k mod depth, which the receive of token k - depth frees. At depth 0 the slot
exists once the token's consumer has arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum

from pto_wsp.ir.flow import RecordEvent, walk
from pto_wsp.ir.plan import PlanPipeline, TaskPlan
from pto_wsp.values import dataclass


def recorder_of(pipeline: PlanPipeline, event: int) -> int:
    """Return the stream that records an event of a pipeline, 0 for none."""
    return next((process.stream for process in pipeline.processes for item in walk(process.body)
                 if isinstance(item, RecordEvent) and item.event == event), 0)


class Wait(IntEnum):
    """PTO_STUCK_: what a blocked process waits for."""

    SEND = 1       # a slot
    RECEIVE = 2    # a token
    TURN = 3       # another producer or consumer is next
    EVENT = 4      # a record
    CLOSED = 5     # a token that never comes: the channel is closed and empty
    LOST = 6       # nothing: no process receives its token
    NEVER = 7      # a record that never comes: the recording process has ended


@dataclass(frozen=True, slots=True)
class Stuck:
    """Where and why a stream is blocked.

    It holds the statement, what it waits for, the channel or event, the number of the token or record, and the stream that could release
    it.
    """

    stream: int
    site: int
    waits_for: Wait
    channel: int
    position: int
    peer: int | None


@dataclass(slots=True)
class StreamRotation:
    """Round-robin turns among streams."""

    streams: Sequence[int]
    at: int = 0
    ended: set[int] = field(default_factory=set)

    @property
    def current(self) -> int | None:
        """The stream whose turn it is; None if all have ended."""
        for _ in self.streams:
            if self.streams[self.at] not in self.ended:
                return self.streams[self.at]
            self.at = (self.at + 1) % len(self.streams)
        return None

    def advance(self) -> None:
        """Pass the turn to the next stream."""
        self.at = (self.at + 1) % len(self.streams)

    def end(self, stream: int) -> None:
        """Remove a stream that has ended."""
        if stream in self.streams:
            self.ended.add(stream)


@dataclass(slots=True)
class Token:
    """A token in a channel: its payload, and the node of the record whose completion is the token's arrival."""

    node: int
    payload: tuple[int | None, ...]     # None: unknown, when processes run without their tasks
    stream: int = 0
    site: int = -1       # the sending statement


class ChannelState:
    """One channel while a pipeline runs. Nodes are numbers chosen by the caller.

    `initial`: the number of tokens that the channel begins with. As many may be in it at the end.
    """

    def __init__(self, depth: int, producers: Sequence[int], consumers: Sequence[int], initial: int = 0) -> None:
        self.depth, self.initial = depth, initial
        self.producers, self.consumers = StreamRotation(producers), StreamRotation(consumers)
        self.n_sent = self.n_received = 0
        self.high_water = 0
        self._tokens: dict[int, Token] = {}
        self._freed: dict[int, int] = {}       # token -> node of its receive; at depth 0 of its consumer's arrival

    @property
    def closed(self) -> bool:
        """True if all producers have ended."""
        return self.producers.current is None

    def send_waits(self, stream: int) -> Wait | None:
        """Return what a producer waits for; None if it may send."""
        if self.consumers.current is None and self.n_sent - self.n_received >= self.initial:
            return Wait.LOST
        if self.producers.current != stream:
            return Wait.TURN
        if self.depth:
            return Wait.SEND if self.n_sent - self.n_received >= self.depth else None
        return None if self.n_sent in self._freed else Wait.SEND

    def slot(self) -> int | None:
        """Return, once, the node that the next send waits for: the receive that frees its slot, or None."""
        return self._freed.pop(self.n_sent if self.depth == 0 else self.n_sent - self.depth, None)

    def send_peer(self, wait: Wait) -> int | None:
        """Return the stream that a blocked producer waits for."""
        return self.producers.current if wait is Wait.TURN else self.consumers.current

    def send(self, token: Token) -> None:
        """Send the next token."""
        self._tokens[self.n_sent] = token
        self.n_sent += 1
        self.high_water = max(self.high_water, self.n_sent - self.n_received)
        self.producers.advance()

    def may_arrive(self, stream: int) -> bool:
        """Tell whether a consumer at depth 0 receives the next token and has not yet announced its arrival."""
        return (self.depth == 0 and not self.closed and self.consumers.current == stream and self.n_sent == self.n_received
                and self.n_sent not in self._freed)

    def arrive(self, node: int) -> None:
        """Announce the arrival of the consumer of the next token."""
        self._freed[self.n_sent] = node

    def receive_waits(self, stream: int) -> Wait | None:
        """Return what a consumer waits for; None if it may receive, CLOSED if no token will come."""
        empty = self.n_sent == self.n_received
        if empty and self.closed:
            return Wait.CLOSED
        if self.consumers.current != stream:
            return Wait.TURN
        return Wait.RECEIVE if empty else None

    def receive_peer(self, wait: Wait) -> int | None:
        """Return the stream that a blocked consumer waits for."""
        return self.consumers.current if wait is Wait.TURN else self.producers.current

    def token(self) -> Token:
        """Return the next token to be received."""
        return self._tokens[self.n_received]

    def receive(self, node: int) -> None:
        """Receive the next token; `node`: the node of the receive."""
        del self._tokens[self.n_received]
        if self.depth:
            self._freed[self.n_received] = node
        self.n_received += 1
        self.consumers.advance()

    def end(self, stream: int) -> None:
        """Remove a stream that has ended from the turns."""
        self.producers.end(stream)
        self.consumers.end(stream)


class EventState:
    """One event while a pipeline runs: the recording stream, and a node for each record."""

    def __init__(self, recorder: int) -> None:
        self.recorder = recorder
        self.nodes: list[int] = []
        self.ended = False

    def waits(self, position: int) -> Wait | None:
        """Return what a stream waits for that needs record number `position`; None if it exists."""
        if position < len(self.nodes):
            return None
        return Wait.NEVER if self.ended else Wait.EVENT

    def end(self, stream: int) -> None:
        """Record that a stream has ended."""
        self.ended = self.ended or stream == self.recorder


class NetworkState:
    """The channels and events of a pipeline while it runs, by their numbers in the plan. `depths`: replacements of channel depths."""

    def __init__(self, plan: TaskPlan, pipeline: PlanPipeline, depths: Mapping[int, int] | None = None) -> None:
        known = depths or {}
        self.channels = {number: ChannelState(known.get(number, channel.depth), channel.producers, channel.consumers, channel.initial)
                         for number in pipeline.channels for channel in (plan.channels[number],)}
        self.events = {number: EventState(recorder_of(pipeline, number)) for number in pipeline.events}

    def end(self, stream: int) -> None:
        """Remove a stream that has ended from all turns."""
        for channel in self.channels.values():
            channel.end(stream)
        for event in self.events.values():
            event.end(stream)

    def leftover(self) -> Stuck | None:
        """Return the first token never received, as its sender's wait; None if no channel has more tokens than it began with."""
        for number, channel in self.channels.items():
            if channel.n_sent - channel.n_received > channel.initial:
                token = channel.token()
                return Stuck(token.stream, token.site, Wait.LOST, number, channel.n_received, None)
        return None
