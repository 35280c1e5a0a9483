"""Order two accesses in processes by tokens, credits and events.

*Routes.* What precedes a send is complete when the token is received. A route leads from one access's process through sends and receives
to the other access. If the payload identifies the sending iteration, two accesses are ordered unless their iterations differ.

*Chains.* For a channel of depth d, send k precedes receive k, and receive k precedes send k + d, whose slot the receive frees (a credit).
Let access a precede its process's send s, and access b follow its process's receive t: a precedes b if s <= t. If b precedes receive t' and
a follows send s', b precedes a if t' + d <= s'. So a ring of r buffers is safe behind a channel of depth r - 2: one buffer is written, one
is read. Further processes extend the count. An event is a channel without credits. Positions are affine and depths constant, so a proof
holds for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pto_wsp.check.races.accesses import Contest, Level
from pto_wsp.check.races.filters import is_apart
from pto_wsp.check.races.positions import End, Path, ends_in, last_before, next_after, next_of, only_end, path_to
from pto_wsp.check.races.question import Data, Hop, Link, Order, Origin, Pair, Question, Route, TokenChain
from pto_wsp.ir.flow import AwaitEvent, Consume, Loop, Pipeline, Process, Receive, RecordEvent, Send, Sides, communicates, walk
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.plan import Item, PlanConsume, PlanLoop, PlanPipeline, PlanProcess, Submit
from pto_wsp.values import dataclass

_MOST_PROCESSES = 5      # processes on one chain
_MOST_CHAINS = 12        # chains for one pair


# -- chains of counted tokens ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Transit:
    """A step from a token at one end to the next token at the other end, `shift` positions later."""

    leaves: End
    arrives: End
    shift: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenNetwork:
    """The counted communication of a pipeline.

    It has the hops along countable channels and events, and for each channel with one send statement that statement and the origin of its
    tokens.
    """

    hops: tuple[_Transit, ...]
    sends: Mapping[int, End]
    origins: Mapping[int, Origin]


def network_of(pipeline: PlanPipeline, depths: Sequence[int], initial: Sequence[int]) -> TokenNetwork:
    """Return what is counted of a pipeline. `depths`, `initial`: of the plan's channels."""
    sends = {channel: sent for channel in pipeline.channels if (sent := only_end(pipeline, (Send,), channel)) is not None}
    return TokenNetwork(_hops(pipeline, depths, initial), sends, _origins(pipeline))


def chains_of(network: TokenNetwork, pair: Pair, *, structure: bool) -> Iterator[TokenChain]:
    """Yield at most _MOST_CHAINS chains between two accesses in processes, in both directions, shortest first."""
    chains: list[TokenChain] = []
    for side in (0, 1):
        home, other = (pair.accesses[at].levels[pair.depth] for at in (side, 1 - side))
        if isinstance(home, Process) and isinstance(other, Process):
            chains += (chain for way in _ways(network.hops, home, other)
                      if (chain := _chain(way, side, pair, structure=structure)) is not None)
    chains.sort(key=lambda chain: len(chain.links))
    yield from chains[:_MOST_CHAINS]


def _origins(pipeline: PlanPipeline) -> Mapping[int, Origin]:
    found: dict[int, Origin] = {}
    for channel in pipeline.channels:
        sent, taken = only_end(pipeline, (Send,), channel), only_end(pipeline, (Receive, Consume), channel)
        if sent is None or not isinstance(sent.statement, Send):
            continue
        counted = taken is not None and sent.is_countable and taken.is_countable
        found[channel] = Origin(sent.levels, sent.statement.payload, sent.position if counted else None,
                                taken.position if counted and taken is not None else None)
    return found


def _hops(pipeline: PlanPipeline, depths: Sequence[int], initial: Sequence[int]) -> tuple[_Transit, ...]:
    hops: list[_Transit] = []
    for channel in pipeline.channels:
        # The first sends give the tokens that the channel begins with. Send number p of the other statement gives token p + first.
        first = initial[channel]
        sent, received = only_end(pipeline, (Send,), channel, first), only_end(pipeline, (Receive, Consume), channel)
        if sent is not None and received is not None and sent.is_countable and received.is_countable:
            hops += (_Transit(sent, received, first), _Transit(received, sent, depths[channel] - first))
    for event in pipeline.events:
        record = only_end(pipeline, (RecordEvent,), event)
        if record is None or not record.is_countable or record.process.replicas > 1:
            continue
        for process in pipeline.processes:
            waits = list(ends_in(process, (AwaitEvent,), event))
            if len(waits) == 1 and waits[0].is_countable and process.replicas == 1:
                hops.append(_Transit(record, waits[0], 0))
    return tuple(hops)


def _ways(hops: tuple[_Transit, ...], home: PlanProcess, other: PlanProcess,
          so_far: tuple[_Transit, ...] = ()) -> Iterator[tuple[_Transit, ...]]:
    """Yield the ways from one process to another (or from replica to replica) that come to no process twice."""
    at = so_far[-1].arrives.process if so_far else home
    passed = [hop.leaves.process for hop in so_far]
    for hop in hops:
        after = hop.arrives.process
        if hop.leaves.process is not at:
            continue
        if after is other:
            yield (*so_far, hop)
        elif after is not home and after not in passed and len(so_far) + 2 < _MOST_PROCESSES:
            yield from _ways(hops, home, other, (*so_far, hop))


def _chain(way: tuple[_Transit, ...], side: int, pair: Pair, *, structure: bool) -> TokenChain | None:
    """Return a path between two accesses as a chain; None if the program order at an end or on the path is unknown."""
    first, second = pair.accesses[side].statement, pair.accesses[1 - side].statement
    if not isinstance(first, Submit) or not isinstance(second, Submit):
        return None
    begin, finish = path_to(way[0].leaves.process.body, first), path_to(way[-1].arrives.process.body, second)
    assert begin is not None and finish is not None
    start = next_after(begin, way[0].leaves, first, structure=structure)
    end = last_before(finish, way[-1].arrives, structure=structure)
    if start is None or end is None:
        return None
    links: list[Link] = []
    stretch = start.stretch
    for hop, onward in pairwise(way):
        then = next_of(hop.arrives, onward.leaves, structure=structure)
        if then is None:
            return None
        links.append(Link(hop.arrives.levels, hop.arrives.position, then, onward.shift))
        stretch = stretch or hop.arrives.process.replicas == 1
    return TokenChain(side, start.position, way[0].shift, tuple(links), end.position, stretch or end.stretch)


# -- the order of a pair -----------------------------------------------------------------------------------------------
def perhaps_ordered(contest: Contest, pair: Pair) -> bool:
    """Tell whether two accesses to one element may be ordered, or never happen, by tokens whose contents are known only at run time.

    False if one access is in a process that does not communicate: nothing orders that process with the other.
    """
    if isinstance(contest.node, Loop | Sides):
        return any(isinstance(level, Consume | Receive) for access in pair.accesses for level in access.levels[contest.depth:])
    homes = [level for access in pair.accesses for level in access.levels if isinstance(level, Process)]
    return all(communicates(home.body) for home in homes)


def order_of(contest: Contest, pair: Pair, data: Data) -> Order:
    """Return all tokens, credits and events that may order two accesses in processes."""
    pipeline = contest.pipeline
    if pipeline is None:
        return Order()
    same = contest.node.replicas if isinstance(contest.node, Process) else 0
    takes = [next((level for level in access.levels[pair.depth:] if isinstance(level, Consume)), None) for access in pair.accesses]
    network = data.kept.get(("network", id(pipeline)))
    if not isinstance(network, TokenNetwork):
        network = data.kept[("network", id(pipeline))] = network_of(pipeline, data.depths, data.initial)
    return Order(tuple(_routes(contest, pipeline, network, pair, structure=data.structure)),
                 tuple(chains_of(network, pair, structure=data.structure)), network.origins,
                 same if None not in takes and takes[0] is takes[1] else 0)


def _routes(contest: Contest, pipeline: PlanPipeline, network: TokenNetwork, pair: Pair, *, structure: bool) -> Iterator[Route]:
    """Yield the routes of tokens and events from the process of one access to that of the other, either way; and of two replicas of a
    process the one that says that they have taken different tokens. Without `structure` a token waits for the task that it is of alone."""
    if isinstance(contest.node, Process):
        yield from _of_replicas(network, pair)
        return
    for side in (0, 1):
        first, second = pair.accesses[side], pair.accesses[1 - side]
        home = first.levels[pair.depth]
        if not isinstance(home, Process) or not isinstance(first.statement, Submit):
            continue
        path = path_to(home.body, first.statement)
        if path is None:
            continue
        for hops, sent in _earlier_sends(network, second.levels[pair.depth + 1:], (), frozenset()):
            around = _common_repeats(path, sent.path) if sent.process is home else None
            if not structure and not (isinstance(sent.statement, Send) and first.statement.handle in sent.statement.after):
                continue
            if around is not None and _is_single_replica(home, around):
                iterations = tuple(_iteration_key(network, item) for item in around if isinstance(item, Consume))
                if None not in iterations:
                    loops = tuple(item for item in around if isinstance(item, Loop))
                    yield Route(side, hops, loops, tuple(iteration for iteration in iterations if iteration is not None))
        if home.replicas == 1 and _event_between(pipeline, home, path, second.levels[pair.depth], second.statement):
            yield Route(side)


def ordered_by_tokens(contest: Contest, pair: Pair, data: Data) -> bool:
    """Tell whether tokens, credits or events are proved to order two accesses wherever they touch the same element.

    Single routes are tried first, because one usually suffices; then all routes and chains together.
    """
    order = order_of(contest, pair, data)
    for route in order.routes:
        if _is_proved_apart(pair, data, Order((route,))):
            return True
    return bool(order.chains or order.replicas) and _is_proved_apart(pair, data, order)


def _is_proved_apart(pair: Pair, data: Data, order: Order) -> bool:
    question = Question(pair, data, pinned=False, order=order)
    question.guard()
    return is_apart(question)


# -- routes of tokens --------------------------------------------------------------------------------------------------
def _earlier_sends(network: TokenNetwork, levels: tuple[Level, ...], hops: tuple[Hop, ...],
          seen: frozenset[int]) -> Iterator[tuple[tuple[Hop, ...], End]]:
    """Yield the sends that must precede, given these levels: of the tokens received there, and recursively of the tokens before."""
    for level in levels:
        if not isinstance(level, Consume | Receive) or level.channel in seen:
            continue
        sent = _only_send(network, level.channel)
        if sent is not None and isinstance(sent.statement, Send):
            further = (*hops, Hop(sent.levels, sent.statement.payload, level.vars))
            yield further, sent
            yield from _earlier_sends(network, sent.levels, further, seen | {level.channel})


def _only_send(network: TokenNetwork, channel: int) -> End | None:
    """Return the only send to a channel; None if several statements or replicas send."""
    sent = network.sends.get(channel)
    return sent if sent is not None and _is_single_replica(sent.process, sent.levels) else None


def _is_single_replica(process: PlanProcess, around: Iterable[object]) -> bool:
    """Tell whether what is inside these happens in one replica each time: a token is taken by one."""
    return process.replicas == 1 or any(isinstance(level, Consume) for level in around)


def _of_replicas(network: TokenNetwork, pair: Pair) -> Iterator[Route]:
    ours, theirs = (next((level for level in access.levels[pair.depth:] if isinstance(level, Consume)), None) for access in pair.accesses)
    iteration = _iteration_key(network, ours) if ours is not None and ours is theirs else None
    if iteration is not None:
        yield Route(0, iterations=(iteration,), replicas=True)


def _common_repeats(before: Path, after: Path) -> tuple[PlanLoop | PlanConsume, ...] | None:
    """Return what repeats both of two statements, where the first comes before the second each time; None where it does not."""
    around: list[PlanLoop | PlanConsume] = []
    for (item, here), (other, there) in zip(before, after, strict=False):
        if item is not other or isinstance(item, Pipeline):
            return None
        if here != there:
            return tuple(around) if isinstance(item, PlanSequence) and here < there else None
        if isinstance(item, Loop | Consume):
            around.append(item)
    return None


def _iteration_key(network: TokenNetwork, consumer: PlanConsume) -> tuple[Hop, ...] | None:
    """Return the loops that tell iterations of a consumer apart: loops around the send of its token, then around earlier sends."""
    hops: list[Hop] = []
    pending, seen = [consumer], {consumer.channel}
    while pending:
        level = pending.pop()
        sent = _only_send(network, level.channel)
        if sent is None or not isinstance(sent.statement, Send):
            return None
        inside = tuple(inner for inner in sent.levels if isinstance(inner, Consume | Receive))
        if len(inside) > 1 or any(isinstance(inner, Receive) or inner.channel in seen for inner in inside):
            return None
        hops.append(Hop(sent.levels, sent.statement.payload, level.vars))
        pending.extend(inner for inner in inside if isinstance(inner, Consume))
        seen.update(inner.channel for inner in inside)
    return tuple(hops)


def _event_between(pipeline: PlanPipeline, home: PlanProcess, path: Path, other: Level, statement: object) -> bool:
    """Tell whether an event of a process, which happens once, comes after a statement, and another one waits for it before its own."""
    theirs = path_to(other.body, statement) if isinstance(other, Process) else None
    if not isinstance(other, Process) or not theirs:
        return False
    once = [item.event for item in home.body.items[path[0][1] + 1:] if isinstance(item, RecordEvent)]
    awaited = {item.event for item in other.body.items[:theirs[0][1]] if isinstance(item, AwaitEvent)}
    return any(event in awaited and sum(_records(process.body, event) for process in pipeline.processes) == 1 for event in once)


def _records(item: Item, event: int) -> int:
    """Count the statements that record an event."""
    return sum(isinstance(inner, RecordEvent) and inner.event == event for inner in walk(item))
