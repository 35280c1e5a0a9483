"""Run a pipeline without its tasks: only what its processes send, receive and wait for, with numbers.

Whether processes get stuck depends on their communication alone and not on the interleaving (a Kahn network with bounded channels), so one
run decides it for the numbers used.

A run may also watch task sites. Each watched instance gets the set of watched instances that precede it by a chain of program order,
tokens, credits (a receive before the send that reuses the slot) and events. These sets, as bit masks, travel with tokens and records.
Program order is structural: iterations of an unordered loop are not ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from typing import TypeAlias

from pto_wsp.ir import scalar as s
from pto_wsp.ir.channels import NetworkState, Stuck, Token, Wait
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Do, Loop, Receive, RecordEvent, Send, Sequence, Sides, communicates, leaves
from pto_wsp.ir.plan import Item, PlanLoop, PlanPipeline, PlanProcess, PlanSend, Submit, TaskPlan
from pto_wsp.values import dataclass

Number: TypeAlias = "int | float"
Leaf: TypeAlias = Callable[[s.Scalar], Number]
Steps: TypeAlias = "Generator[Stuck, None, int]"       # returns the completed watched tasks as a bit mask
NO_BOUND = 1 << 40     # a depth that is never reached


class Uncountable(Exception):
    """A number of the communication is unknown before the run, or the budget is exceeded; the text says which."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a skeleton ended.

    `rows`: where each stream was stuck, empty if all ended; `most`: the largest number of tokens in each channel.
    """

    rows: tuple[Stuck, ...]
    most: Mapping[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class WatchedTask:
    """An instance of a watched task site.

    `before`: bit k is set if watched instance k is complete when this instance starts. `value` evaluates a scalar in the instance.
    `tokens`: how many tokens the stream has sent to or received from each channel before.
    """

    site: int
    stream: int
    before: int
    value: Callable[[s.Scalar], Number]
    tokens: Mapping[int, int]


@dataclass(slots=True)
class Budget:
    """The number of statements that may still run."""

    left: int

    def spend(self) -> None:
        """Count one statement.

        Raises: NotKnown if none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise Uncountable("it communicates too much to be run here")


@dataclass(frozen=True, slots=True)
class Skeletons:
    """Runs the pipelines of a plan. `leaf` evaluates leaves other than variables of loops and tokens; `outer`: loop variables around.

    `sites`: task sites to watch; their instances are appended to `watched`.
    """

    plan: TaskPlan
    leaf: Leaf
    budget: Budget
    outer: Mapping[int, int] = field(default_factory=dict)
    talks: dict[int, bool] = field(default_factory=dict)
    sites: frozenset[int] = frozenset()
    watched: list[WatchedTask] = field(default_factory=list)

    def run(self, pipeline: PlanPipeline, depths: Mapping[int, int] | None = None) -> Outcome:
        """Run one, perhaps with other depths of its channels.

        Raises: NotKnown if a number is unknown or the budget is exceeded.
        """
        network = NetworkState(self.plan, pipeline, depths)
        streams = [_Replica(self, process, replica, network) for process in pipeline.processes for replica in range(process.replicas)]
        running = [(stream, stream.steps(stream.process.body, 0)) for stream in streams]
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

    def live_depths(self, pipeline: PlanPipeline) -> Mapping[int, int] | None:
        """Return the smallest depths, of channels that need others than they have, with which the pipeline ends; None: there are none.

        Minimal one channel at a time, by bisection: a larger depth never blocks what a smaller depth lets pass.
        Raises: NotKnown if a number is unknown or the budget is exceeded.
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


class _Replica:
    """One replica of a process."""

    def __init__(self, whole: Skeletons, process: PlanProcess, replica: int, network: NetworkState) -> None:
        self.whole, self.process, self.channels, self.events = whole, process, network.channels, network.events
        self.number, self.replica = process.stream + replica, replica
        self.vars: dict[int, int | None] = dict(whole.outer)     # None: unknown
        self.n_awaited: dict[int, int] = {}
        self.tokens: dict[int, int] = {}

    def steps(self, item: Item, past: int) -> Steps:
        """Run the communication and the watched tasks of an item; yield at each wait. `past`: the completed watched tasks."""
        if not self._counts(item):
            return past
        match item:
            case Do(task):
                return self._watch(task, past)
            case Sequence(items):
                for inner in items:
                    past = yield from self.steps(inner, past)
                return past
            case Sides(sides):
                over = past
                for side in sides:
                    over |= yield from self.steps(side, past)
                return over
            case Loop():
                return (yield from self._turns(item, past))
            case Choice(branches, otherwise):
                chosen = next((branch.body for branch in branches if self._value(branch.condition)), otherwise)
                return (yield from self.steps(chosen, past))
            case Send():
                return (yield from self._send(item, past))
            case Receive(channel, variables, site):
                if (yield from self._closed(channel, site, past)):
                    yield self._stuck(site, Wait.CLOSED, channel, self.channels[channel].n_received, None)
                return self._take(channel, variables, past)
            case Consume(channel, variables, body, site):
                while not (yield from self._closed(channel, site, past)):
                    past = self._take(channel, variables, past)
                    past = yield from self.steps(body, past)
                return past
            case RecordEvent(event):
                self.whole.budget.spend()
                self.events[event].nodes.append(past)
                return past
            case AwaitEvent(event, site):
                position = self.n_awaited.get(event, 0)
                while (wait := self.events[event].waits(position)) is not None:
                    yield self._stuck(site, wait, event, position, self.events[event].recorder)
                self.n_awaited[event] = position + 1
                self.whole.budget.spend()
                return past | self.events[event].nodes[position]
            case _:
                return past

    def _turns(self, loop: PlanLoop, past: int) -> Steps:
        start, stop, step = (self._int(bound) for bound in (loop.start, loop.stop, loop.step))
        over = past
        for value in range(start, stop, step):
            self.whole.budget.spend()
            self.vars[loop.var.id] = value
            if loop.through is not None:
                self.vars[loop.through.var.id] = self._maybe(loop.through.value)
            over |= yield from self.steps(loop.body, over if loop.ordered else past)
        return over

    def _counts(self, item: Item) -> bool:
        known = self.whole.talks.get(id(item))
        if known is None:
            known = self.whole.talks[id(item)] = communicates(item) or any(
                task.site in self.whole.sites for task in leaves(item))
        return known

    def _watch(self, task: Submit, past: int) -> int:
        """Record an instance of a watched task; return the tasks that are complete after it."""
        self.whole.budget.spend()
        values = dict(self.vars)
        number = len(self.whole.watched)
        self.whole.watched.append(WatchedTask(task.site, self.number, past,
                                              lambda node: s.evaluate(node, lambda leaf: self._leaf_of(leaf, values)), dict(self.tokens)))
        return past | 1 << number

    def _send(self, send: PlanSend, past: int) -> Steps:
        channel = self.channels[send.channel]
        while (wait := channel.send_waits(self.number)) is not None:
            yield self._stuck(send.site, wait, send.channel, channel.n_sent, channel.send_peer(wait))
        past |= channel.slot() or 0
        channel.send(Token(past, tuple(map(self._maybe, send.payload)), self.number, send.site))
        self._moved(send.channel)
        return past

    def _closed(self, number: int, site: int, past: int) -> Generator[Stuck, None, bool]:
        channel = self.channels[number]
        while (wait := channel.receive_waits(self.number)) is not None:
            if wait is Wait.CLOSED:
                return True
            if channel.may_arrive(self.number):
                channel.arrive(past)
                self.whole.budget.spend()
            yield self._stuck(site, wait, number, channel.n_received, channel.receive_peer(wait))
        return False

    def _take(self, number: int, variables: tuple[s.Var, ...], past: int) -> int:
        channel = self.channels[number]
        token = channel.token()
        self.vars.update(zip((variable.id for variable in variables), token.payload, strict=False))
        past |= token.node
        channel.receive(past)
        self._moved(number)
        return past

    def _moved(self, number: int) -> None:
        self.tokens[number] = self.tokens.get(number, 0) + 1
        self.whole.budget.spend()

    def _stuck(self, site: int, wait: Wait, number: int, position: int, peer: int | None) -> Stuck:
        return Stuck(self.number, site, wait, number, position, peer)

    def _maybe(self, node: s.Scalar) -> int | None:
        try:
            return self._int(node)
        except Uncountable:
            return None

    def _int(self, node: s.Scalar) -> int:
        return int(self._value(node))

    def _value(self, node: s.Scalar) -> Number:
        return s.evaluate(node, self._leaf)

    def _leaf(self, node: s.Scalar) -> Number:
        return self._leaf_of(node, self.vars)

    def _leaf_of(self, node: s.Scalar, values: Mapping[int, int | None]) -> Number:
        match node:
            case s.Var(name, id) if id in values:
                value = values[id]
                if value is None:
                    raise Uncountable(f"`{name}` is known at run time alone")
                return value
            case s.ReplicaIndex():
                return self.replica
            case s.Element(tensor, index):
                index_values = (s.evaluate(i, lambda leaf: self._leaf_of(leaf, values)) for i in index)
                return self.whole.leaf(s.Element(tensor, tuple(s.Const(int(i)) for i in index_values)))
            case _:
                return self.whole.leaf(node)
