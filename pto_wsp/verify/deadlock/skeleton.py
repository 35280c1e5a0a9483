"""A pipeline without its tasks: only what its processes send, take and wait for, run with numbers.

Whether processes come to a stop depends on their communication alone, and on no order of turns (they are a Kahn network with channels of
a known room), so one run of the skeleton decides it for the numbers that it was run with.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from typing import TypeAlias

from pto_wsp.plan.model import (
    AwaitEvent,
    Choice,
    Consume,
    Item,
    Loop,
    Pipeline,
    Process,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    Sides,
    TaskPlan,
)
from pto_wsp.plan.waits.channel_state import NetworkState, Stuck, Token, Wait
from pto_wsp.plan.waits.communication import communicates
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass

Number: TypeAlias = "int | float"
Leaf: TypeAlias = Callable[[s.Scalar], Number]
Steps: TypeAlias = "Generator[Stuck, None, None]"
NO_BOUND = 1 << 40     # as a depth: never full


class NotKnown(Exception):
    """A number of the communication is not known here, or there is too much of it: why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a skeleton ended. `rows`: what streams stood at when none could go on, none when all ended; `most`: the most tokens that each
    channel held at once."""

    rows: tuple[Stuck, ...]
    most: Mapping[int, int]


@dataclass(slots=True)
class Budget:
    """How many statements may still be run."""

    left: int

    def spend(self) -> None:
        """Count one.

        Raises: NotKnown when none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise NotKnown("it communicates too much to be run here")


@dataclass(frozen=True, slots=True)
class Skeletons:
    """Runs pipelines of a plan. `leaf` gives the numbers that are no variables of loops or tokens; `outer`: loop variables around."""

    plan: TaskPlan
    leaf: Leaf
    budget: Budget
    outer: Mapping[int, int] = field(default_factory=dict)
    talks: dict[int, bool] = field(default_factory=dict)

    def run(self, pipeline: Pipeline, depths: Mapping[int, int] | None = None) -> Outcome:
        """Run one, perhaps with other depths of its channels.

        Raises: NotKnown.
        """
        network = NetworkState(self.plan, pipeline, depths)
        streams = [_Stream(self, process, replica, network) for process in pipeline.processes for replica in range(process.replicas)]
        running = [(stream, stream.steps(stream.process.body)) for stream in streams]
        while running:
            rows: list[Stuck] = []
            waiting = []
            before = self.budget.left
            for stream, steps in running:
                row = next(steps, None)
                if row is None:
                    network.end(stream.number)
                    self.budget.spend()
                elif row.waits_for in (Wait.CLOSED, Wait.LOST, Wait.NEVER):
                    return Outcome((row,), {})
                else:
                    rows.append(row)
                    waiting.append((stream, steps))
            if self.budget.left == before:
                return Outcome(tuple(rows), {number: channel.high_water for number, channel in network.channels.items()})
            running = waiting
        lost = network.leftover()
        if lost is not None:
            return Outcome((lost,), {})
        return Outcome((), {number: channel.high_water for number, channel in network.channels.items()})

    def live_depths(self, pipeline: Pipeline) -> Mapping[int, int] | None:
        """Return the smallest depths, of channels that need others than they have, with which the pipeline ends; None: there are none.

        Each alone cannot be smaller while the others stay; more room never stops what went on with less.
        Raises: NotKnown.
        """
        own = {number: self.plan.channels[number].depth for number in pipeline.channels}
        free = self.run(pipeline, dict.fromkeys(own, NO_BOUND))
        if free.rows:
            return None
        depths = {number: max(own[number], free.most[number]) for number in own}
        for number in own:
            low, high = own[number], depths[number]
            while low < high:
                middle = (low + high) // 2
                if self.run(pipeline, {**depths, number: middle}).rows:
                    low = middle + 1
                else:
                    high = middle
            depths[number] = high
        return {number: depth for number, depth in depths.items() if depth != own[number]}


class _Stream:
    """One replica of a process."""

    def __init__(self, whole: Skeletons, process: Process, replica: int, network: NetworkState) -> None:
        self.whole, self.process, self.channels, self.events = whole, process, network.channels, network.events
        self.number, self.replica = process.stream + replica, replica
        self.vars: dict[int, int | None] = dict(whole.outer)     # None: not known
        self.n_awaited: dict[int, int] = {}

    def steps(self, item: Item) -> Steps:
        """Go through what communicates; yield what has to be waited for."""
        if not self._talks(item):
            return
        match item:
            case Sequence(items) | Sides(items):
                for inner in items:
                    yield from self.steps(inner)
            case Loop():
                start, stop, step = (self._int(bound) for bound in (item.start, item.stop, item.step))
                for value in range(start, stop, step):
                    self.whole.budget.spend()
                    self.vars[item.var.id] = value
                    if item.through is not None:
                        self.vars[item.through.var.id] = self._maybe(item.through.value)
                    yield from self.steps(item.body)
            case Choice(branches, otherwise):
                chosen = next((branch.body for branch in branches if self._value(branch.condition)), otherwise)
                yield from self.steps(chosen)
            case Send():
                yield from self._send(item)
            case Receive(channel, variables, site):
                if (yield from self._closed(channel, site)):
                    yield self._stuck(site, Wait.CLOSED, channel, self.channels[channel].n_received, None)
                self._take(channel, variables)
            case Consume(channel, variables, body, site):
                while not (yield from self._closed(channel, site)):
                    self._take(channel, variables)
                    yield from self.steps(body)
            case RecordEvent(event):
                self.whole.budget.spend()
                self.events[event].nodes.append(0)
            case AwaitEvent(event, site):
                position = self.n_awaited.get(event, 0)
                while (wait := self.events[event].waits(position)) is not None:
                    yield self._stuck(site, wait, event, position, self.events[event].recorder)
                self.n_awaited[event] = position + 1
                self.whole.budget.spend()
            case _:
                pass

    def _talks(self, item: Item) -> bool:
        known = self.whole.talks.get(id(item))
        if known is None:
            known = self.whole.talks[id(item)] = communicates(item)
        return known

    def _send(self, send: Send) -> Steps:
        channel = self.channels[send.channel]
        while (wait := channel.send_waits(self.number)) is not None:
            yield self._stuck(send.site, wait, send.channel, channel.n_sent, channel.send_peer(wait))
        channel.slot()
        channel.send(Token(0, tuple(map(self._maybe, send.payload)), self.number, send.site))
        self.whole.budget.spend()

    def _closed(self, number: int, site: int) -> Generator[Stuck, None, bool]:
        channel = self.channels[number]
        while (wait := channel.receive_waits(self.number)) is not None:
            if wait is Wait.CLOSED:
                return True
            if channel.may_arrive(self.number):
                channel.arrive(0)
                self.whole.budget.spend()
            yield self._stuck(site, wait, number, channel.n_received, channel.receive_peer(wait))
        return False

    def _take(self, number: int, variables: tuple[s.Var, ...]) -> None:
        channel = self.channels[number]
        self.vars.update(zip((variable.id for variable in variables), channel.token().payload, strict=False))
        channel.receive(0)
        self.whole.budget.spend()

    def _stuck(self, site: int, wait: Wait, number: int, position: int, peer: int | None) -> Stuck:
        return Stuck(self.number, site, wait, number, position, peer)

    def _maybe(self, node: s.Scalar) -> int | None:
        try:
            return self._int(node)
        except NotKnown:
            return None

    def _int(self, node: s.Scalar) -> int:
        return int(self._value(node))

    def _value(self, node: s.Scalar) -> Number:
        return s.evaluate(node, self._leaf)

    def _leaf(self, node: s.Scalar) -> Number:
        match node:
            case s.Var(name, id) if id in self.vars:
                value = self.vars[id]
                if value is None:
                    raise NotKnown(f"`{name}` is known at run time alone")
                return value
            case s.ReplicaIndex():
                return self.replica
            case s.Element(tensor):
                return self.whole.leaf(s.Element(tensor, tuple(s.Const(self._int(i)) for i in node.index)))
            case _:
                return self.whole.leaf(node)
