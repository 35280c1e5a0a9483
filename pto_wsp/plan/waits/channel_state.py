"""Where a channel or an event stands while processes run: turns, slots, closing. `csrc/include/pto_channel.h` is the same in C.

Tokens are numbered from 0 as they are sent. A producer may send when it is its turn: turns go round the producers that have not ended,
in the order in which they were declared; so do those of the consumers. Send number k needs slot k mod depth, which token k - depth
gives back when it is taken. At depth 0 the slot of a token is there when its consumer has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum

from pto_wsp.plan.model import Pipeline, TaskPlan
from pto_wsp.plan.waits.communication import recorder_of
from pto_wsp.values import dataclass


class Wait(IntEnum):
    """PTO_STUCK_: what a process that cannot go on waits for."""

    SEND = 1       # a slot
    RECEIVE = 2    # a token
    TURN = 3       # another producer or consumer is next
    EVENT = 4      # a record
    CLOSED = 5     # a token that will never come: the channel is closed and empty
    LOST = 6       # nothing: nobody takes what it has sent
    NEVER = 7      # a record that will never come: the process that records has ended


@dataclass(frozen=True, slots=True)
class Stuck:
    """What a stream stands at: the statement, what it waits for, of which channel or event, the token's (or record's) number, and the
    stream that could let it go on."""

    stream: int
    site: int
    waits_for: Wait
    channel: int
    position: int
    peer: int | None


@dataclass(slots=True)
class Turns:
    """Whose turn it is, among streams in order."""

    streams: Sequence[int]
    at: int = 0
    ended: set[int] = field(default_factory=set)

    @property
    def current(self) -> int | None:
        """The stream whose turn it is, None when all have ended."""
        for _ in self.streams:
            if self.streams[self.at] not in self.ended:
                return self.streams[self.at]
            self.at = (self.at + 1) % len(self.streams)
        return None

    def advance(self) -> None:
        """Let the next one have its turn."""
        self.at = (self.at + 1) % len(self.streams)

    def end(self, stream: int) -> None:
        """Take a stream out."""
        if stream in self.streams:
            self.ended.add(stream)


@dataclass(slots=True)
class Token:
    """A token that has been sent: the node that completes when it is there, and what it carries."""

    node: int
    payload: tuple[int | None, ...]     # None, for whoever runs processes without their tasks: not known
    stream: int = 0
    site: int = -1       # the statement that sent it


class ChannelState:
    """One channel while a pipeline runs. Nodes are numbers of whoever keeps them."""

    def __init__(self, depth: int, producers: Sequence[int], consumers: Sequence[int]) -> None:
        self.depth = depth
        self.producers, self.consumers = Turns(producers), Turns(consumers)
        self.n_sent = self.n_received = 0
        self.high_water = 0
        self._tokens: dict[int, Token] = {}
        self._freed: dict[int, int] = {}       # by token, the node of its receive; at depth 0 that of its consumer's arrival

    @property
    def closed(self) -> bool:
        """True when all producers have ended."""
        return self.producers.current is None

    def send_waits(self, stream: int) -> Wait | None:
        """Return what a producer waits for, None when it may send."""
        if self.consumers.current is None:
            return Wait.LOST
        if self.producers.current != stream:
            return Wait.TURN
        if self.depth:
            return Wait.SEND if self.n_sent - self.n_received >= self.depth else None
        return None if self.n_sent in self._freed else Wait.SEND

    def slot(self) -> int | None:
        """Return the node that the next send waits for: the receive that frees its slot, None when none has to."""
        return self._freed.pop(self.n_sent if self.depth == 0 else self.n_sent - self.depth, None)

    def send_peer(self, wait: Wait) -> int | None:
        """Return the stream that a producer waits for."""
        return self.producers.current if wait is Wait.TURN else self.consumers.current

    def send(self, token: Token) -> None:
        """Put in the next token."""
        self._tokens[self.n_sent] = token
        self.n_sent += 1
        self.high_water = max(self.high_water, self.n_sent - self.n_received)
        self.producers.advance()

    def may_arrive(self, stream: int) -> bool:
        """Tell whether a consumer at depth 0 is the one that the next token meets, and has not said so yet."""
        return (self.depth == 0 and not self.closed and self.consumers.current == stream and self.n_sent == self.n_received
                and self.n_sent not in self._freed)

    def arrive(self, node: int) -> None:
        """Let the next token meet the consumer that has come."""
        self._freed[self.n_sent] = node

    def receive_waits(self, stream: int) -> Wait | None:
        """Return what a consumer waits for, None when it may take the next token; CLOSED when none will come."""
        empty = self.n_sent == self.n_received
        if empty and self.closed:
            return Wait.CLOSED
        if self.consumers.current != stream:
            return Wait.TURN
        return Wait.RECEIVE if empty else None

    def receive_peer(self, wait: Wait) -> int | None:
        """Return the stream that a consumer waits for."""
        return self.consumers.current if wait is Wait.TURN else self.producers.current

    def token(self) -> Token:
        """Return the token that is taken next."""
        return self._tokens[self.n_received]

    def receive(self, node: int) -> None:
        """Take the next token; `node` is where it has been taken."""
        del self._tokens[self.n_received]
        if self.depth:
            self._freed[self.n_received] = node
        self.n_received += 1
        self.consumers.advance()

    def end(self, stream: int) -> None:
        """Take a stream that has ended out of the turns."""
        self.producers.end(stream)
        self.consumers.end(stream)


class EventState:
    """One event while a pipeline runs: the stream that records it, and a node for each record."""

    def __init__(self, recorder: int) -> None:
        self.recorder = recorder
        self.nodes: list[int] = []
        self.ended = False

    def waits(self, position: int) -> Wait | None:
        """Return what a stream waits for that wants record number `position`, None when that has been made."""
        if position < len(self.nodes):
            return None
        return Wait.NEVER if self.ended else Wait.EVENT

    def end(self, stream: int) -> None:
        """Note that a stream has ended."""
        self.ended = self.ended or stream == self.recorder


class NetworkState:
    """The channels and events of a pipeline while it runs, by their numbers in the plan. `depths`: of channels that get others."""

    def __init__(self, plan: TaskPlan, pipeline: Pipeline, depths: Mapping[int, int] | None = None) -> None:
        known = depths or {}
        self.channels = {number: ChannelState(known.get(number, channel.depth), channel.producers, channel.consumers)
                         for number in pipeline.channels for channel in (plan.channels[number],)}
        self.events = {number: EventState(recorder_of(pipeline, number)) for number in pipeline.events}

    def end(self, stream: int) -> None:
        """Take a stream that has ended out of all turns."""
        for channel in self.channels.values():
            channel.end(stream)
        for event in self.events.values():
            event.end(stream)

    def leftover(self) -> Stuck | None:
        """Return the first token that is left, as what its sender waits for; None when all have been taken."""
        for number, channel in self.channels.items():
            if channel.n_sent > channel.n_received:
                token = channel.token()
                return Stuck(token.stream, token.site, Wait.LOST, number, channel.n_received, None)
        return None
