"""Enumerate pipelines: processes are generators that yield at each wait, as the C orchestrator has them as resumable functions.

Processes run round-robin in the order of declaration, each until it must wait. The stream of each process is the same in any interleaving:
tokens are dealt and merged in fixed turns, never by arrival.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator
from typing import TypeAlias

from pto_wsp.ir.channels import NetworkState, Stuck, Token, Wait
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Fresh, Loop, Pipeline, Receive, RecordEvent, Send, Sequence, Sides, communicates
from pto_wsp.ir.plan import Body, Item, PlanAwait, PlanLoop, PlanPipeline, PlanProcess, PlanRecord, PlanSend, PlanSides, TaskPlan
from pto_wsp.ir.scalar import Var
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import describe_check, run_stuck_error
from pto_wsp.run.orchestrator import CheckFailed, MarkInstance, Orchestrator, Released, Sink
from pto_wsp.run.record import EdgeReason, MarkFlag, Stall

Steps: TypeAlias = "Generator[Stuck, None, int]"     # yields each wait; returns the node that later items wait for


class PipelineStuck(Exception):
    """No process can continue, or one never will: where each process that has not ended is stuck."""

    def __init__(self, rows: tuple[Stuck, ...]) -> None:
        super().__init__("a pipeline is stuck")
        self.rows = rows


def enumerate_tasks(plan: TaskPlan, bindings: Bindings, sink: Sink, n_run: Callable[[], int] = lambda: 0) -> None:
    """Write every task of the plan to the sink, in program order. `n_run`: returns the number of tasks run so far.

    Raises: R104 for the first failed check; the error of a stuck pipeline.
    """
    try:
        _MainProgram(plan, bindings, sink).whole()
    except CheckFailed as failed:
        raise describe_check(failed.failed, failed.found, failed.lower, failed.upper, failed.loops, n_run()) from None
    except PipelineStuck as stuck:
        raise run_stuck_error(plan, stuck.rows, bindings) from None


class _MainProgram(Orchestrator):
    """The main program, which starts pipelines."""

    def __init__(self, plan: TaskPlan, bindings: Bindings, sink: Sink) -> None:
        super().__init__(plan, bindings, sink)
        self.talks: dict[int, bool] = {}       # id() of an item -> whether it uses channels or events

    def _item(self, item: Item, after: int) -> int:
        return self._pipeline(item, after) if isinstance(item, Pipeline) else super()._item(item, after)

    def _pipeline(self, pipeline: PlanPipeline, after: int) -> int:
        """Start all streams, let them take turns, and go on when all have ended."""
        network = NetworkState(self.plan, pipeline)
        started = self.sink.mark(MarkInstance(self.stream, MarkFlag.RESTS))
        streams = [_ReplicaStream(self, process, replica, network) for process in pipeline.processes for replica in range(process.replicas)]
        for stream in streams:
            self.sink.mark(MarkInstance(stream.stream, MarkFlag.BLOCKS, EdgeReason.ORDER, before=(started,)))
        running = [(stream, stream.run(after)) for stream in streams]
        last: dict[int, int] = {}
        while running:
            before, waiting = self.counts.n_steps, []
            rows: list[Stuck] = []
            for stream, steps in running:
                try:
                    rows.append(next(steps))
                    waiting.append((stream, steps))
                except StopIteration as stop:
                    last[stream.stream] = stop.value
                    network.end(stream.stream)
                    self.counts.n_steps += 1
            if self.counts.n_steps == before:
                raise PipelineStuck(tuple(rows))
            running = waiting
        lost = network.leftover()
        if lost is not None:
            raise PipelineStuck((lost,))
        ended = tuple(stream.end for stream in streams)
        joined = ended if len(ended) == 1 else (self.sink.join(ended),)
        self.sink.mark(MarkInstance(self.stream, MarkFlag.BLOCKS, EdgeReason.ORDER, before=joined))
        return self._join([last[stream.stream] for stream in streams if last[stream.stream] != after], after)


class _ReplicaStream(Orchestrator):
    """One replica of a process: items that may wait are generators, all others run at once."""

    talks: dict[int, bool]

    def __init__(self, main: _MainProgram, process: PlanProcess, replica: int, network: NetworkState) -> None:
        vars(self).update(vars(main))     # the counts, the sink and what is known of the plan are those of all
        self.leaf = self._leaf
        self.vars = dict(main.vars)
        self.slot_values = dict(main.slot_values)
        self.fresh = dict(main.fresh)
        self.collected = ChainMap({}, main.collected)
        self.process, self.network = process, network
        self.stream, self.replica = process.stream + replica, replica
        self.end = -1
        self.n_awaited: dict[int, int] = {}
        records = any(event.recorder == self.stream for event in network.events.values())
        self.everything: list[int] | None = [] if records and not self.plan.structure else None

    def run(self, after: int) -> Steps:
        """Run the whole body; the last node is a mark after which the stream submits nothing."""
        after = yield from self._waiting(self.process.body, after)
        if self.everything is not None:
            self._join(self.everything, -1)      # unused, but the C orchestrator closes its open join too
        self.end = self.sink.mark(MarkInstance(self.stream, MarkFlag.RESTS))
        return after

    def _waiting(self, item: Item, after: int) -> Steps:
        """Run an item that may wait."""
        if not self._communicates(item):
            return self._item(item, after)
        match item:
            case Sequence(items):
                for position, inner in enumerate(items):
                    after = yield from self._collected(item, position, self._waiting(inner, after))
                for inner in items:
                    if isinstance(inner, Fresh):
                        self.sink.release(Released(self.fresh.pop(inner.tensor)))
                return after
            case Sides(sides):
                ends = []
                for position, side in enumerate(sides):
                    ends.append((yield from self._collected(item, position, self._waiting(side, after))))
                return self._join([end for end in ends if end != after], after)
            case Loop():
                return (yield from self._turns(item, after))
            case Choice(branches, otherwise):
                return (yield from self._waiting(self._chosen(branches, otherwise, after), after))
            case Send():
                return (yield from self._send(item, after))
            case Receive(channel, variables, site):
                return (yield from self._receive(channel, variables, site, after))
            case Consume(channel, variables, body, site):
                while not (yield from self._closed(channel, site, after)):
                    after = self._take(channel, variables, site, after)
                    after = yield from self._waiting(body, after)
                return after
            case AwaitEvent():
                return (yield from self._await(item, after))
            case RecordEvent():
                return self._record(item, after)
            case _:
                return self._item(item, after)

    def _communicates(self, item: Item) -> bool:
        cached = self.talks.get(id(item))
        if cached is None:
            cached = self.talks[id(item)] = communicates(item)
        return cached

    def _collected(self, body: Body | PlanSides, position: int, steps: Steps) -> Steps:
        closing = self.handles.closed_after(body, position)
        for handle in closing:
            self.collected[handle] = []
        after = yield from steps
        for handle in closing:
            self.collected[handle] = [self._join(self.collected[handle], -1)]
        return after

    def _turns(self, loop: PlanLoop, after: int) -> Steps:
        ends: list[int] = []
        outer = dict(self.vars)
        for value in self._bounds(loop, after):
            self._enter(loop, value, after)
            end = yield from self._waiting(loop.body, after)
            if loop.ordered:
                after = end
            elif end != after:
                ends.append(end)
        self.vars = outer
        return after if loop.ordered else self._join(ends, after)

    def _send(self, send: PlanSend, after: int) -> Steps:
        channel, latency = self.network.channels[send.channel], self.plan.channels[send.channel].latency
        while (wait := channel.send_waits(self.stream)) is not None:
            yield self._stuck(send.site, wait, send.channel, channel.n_sent, channel.send_peer(wait))
        behind = tuple(node for handle in self.handles.send_waits(send.site) for node in self.collected[handle] if node >= 0)
        self._ready(send.note, after, behind)
        payload = tuple(self._int(value) for value in send.payload)
        slot, sent = channel.slot(), after
        if slot is not None:    # at depth 0 the token itself holds the sender, until it has met its consumer and is there
            meets = channel.depth == 0
            sent = self._hold(EdgeReason.CHANNEL, Stall.CHANNEL_FULL, send.site, (slot, *(behind if meets else ())), after,
                              latency if meets else 0)
        token = sent
        if channel.depth:
            token = self._mark(MarkFlag(0), EdgeReason.CHANNEL, Stall.NONE, send.site, behind, sent, latency)
        channel.send(Token(token, payload, self.stream, send.site))
        self.counts.n_steps += 1
        return sent if self.plan.structure else after

    def _closed(self, number: int, site: int, after: int) -> Generator[Stuck, None, bool]:
        """Wait until there is a token for this stream; return True if none will come."""
        channel = self.network.channels[number]
        while (wait := channel.receive_waits(self.stream)) is not None:
            if wait is Wait.CLOSED:
                return True
            if channel.may_arrive(self.stream):
                channel.arrive(self._mark(MarkFlag(0), EdgeReason(0), Stall.NONE, site, (), after))
                self.counts.n_steps += 1
            yield self._stuck(site, wait, number, channel.n_received, channel.receive_peer(wait))
        return False

    def _receive(self, number: int, variables: tuple[Var, ...], site: int, after: int) -> Steps:
        if (yield from self._closed(number, site, after)):
            channel = self.network.channels[number]
            raise PipelineStuck((self._stuck(site, Wait.CLOSED, number, channel.n_received, None),))
        return self._take(number, variables, site, after)

    def _take(self, number: int, variables: tuple[Var, ...], site: int, after: int) -> int:
        channel = self.network.channels[number]
        token = channel.token()
        node = self._hold(EdgeReason.CHANNEL, Stall.CHANNEL_EMPTY, site, (token.node,), after)
        channel.receive(node)
        self.counts.n_steps += 1
        for variable, value in zip(variables, token.payload, strict=False):
            assert value is not None
            self.vars[variable.id] = value
        return node if self.plan.structure else after

    def _record(self, record: PlanRecord, after: int) -> int:
        before = () if self.everything is None else tuple(node for node in (self._join(self.everything, -1),) if node >= 0)
        node = self._mark(MarkFlag(0), EdgeReason.EVENT, Stall.NONE, record.site, before, after)
        if self.everything is not None:
            self.everything = [node]
        self.network.events[record.event].nodes.append(node)
        self.counts.n_steps += 1
        return node if self.plan.structure else after

    def _await(self, item: PlanAwait, after: int) -> Steps:
        event, position = self.network.events[item.event], self.n_awaited.get(item.event, 0)
        while (wait := event.waits(position)) is not None:
            row = self._stuck(item.site, wait, item.event, position, event.recorder)
            if wait is Wait.NEVER:
                raise PipelineStuck((row,))
            yield row
        self.n_awaited[item.event] = position + 1
        self.counts.n_steps += 1
        node = self._hold(EdgeReason.EVENT, Stall.EVENT, item.site, (event.nodes[position],), after)
        return node if self.plan.structure else after

    def _hold(self, why: EdgeReason, stall: Stall, site: int, before: tuple[int, ...], after: int, delay: int = 0) -> int:
        """Add a mark that blocks the stream until the nodes in `before` have completed; return its node."""
        return self._mark(MarkFlag.BLOCKS, why, stall, site, before, after, delay)

    def _mark(self, flags: MarkFlag, why: EdgeReason, stall: Stall, site: int, before: tuple[int, ...], after: int, delay: int = 0) -> int:
        order = (after,) if self.plan.structure and after >= 0 else ()
        return self.sink.mark(MarkInstance(self.stream, flags, why, stall, site, before, order, delay=delay))

    def _stuck(self, site: int, wait: Wait, number: int, position: int, peer: int | None) -> Stuck:
        return Stuck(self.stream, site, wait, number, position, peer)
