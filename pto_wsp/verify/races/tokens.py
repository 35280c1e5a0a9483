"""Order between processes: what is done before a token is sent is over when the token is taken.

A route leads from the statement of one process to that of another: the first one's process sends after it, the next one takes and may
send on, the last one takes before the other statement. Where the payload says of which iteration the token is, that is enough for a
proof: an access of the iteration in which the token was sent is over. So two accesses are ordered unless the iterations differ. Where
tokens can be counted, chains.py says more: which tokens of a channel lie between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pto_wsp.plan.model import AwaitEvent, Consume, Item, Loop, Pipeline, Process, Receive, RecordEvent, Send, Sequence, Sides, Submit
from pto_wsp.plan.waits.communication import communicates
from pto_wsp.plan.walk import items_in
from pto_wsp.verify.races.accesses import Level
from pto_wsp.verify.races.chains import Network, chains_of, network_of
from pto_wsp.verify.races.contests import Contest
from pto_wsp.verify.races.filters import is_apart
from pto_wsp.verify.races.order import Hop, Order, Route
from pto_wsp.verify.races.positions import End, Path, path_to
from pto_wsp.verify.races.question import Data, Pair, Question


def perhaps_ordered(contest: Contest, pair: Pair) -> bool:
    """Tell whether two accesses that touch the same element may be ordered, or never happen: what tokens carry is known at run time.

    Not between tasks of which one stands in a process that neither sends, takes nor waits: nothing tells it about the other.
    """
    if isinstance(contest.node, Loop | Sides):
        return any(isinstance(level, Consume | Receive) for access in pair.accesses for level in access.levels[contest.depth:])
    homes = [level for access in pair.accesses for level in access.levels if isinstance(level, Process)]
    return all(communicates(home.body) for home in homes)


def order_of(contest: Contest, pair: Pair, data: Data) -> Order:
    """Return what tokens, credits and events order of two accesses in processes."""
    pipeline = contest.pipeline
    if pipeline is None:
        return Order()
    same = contest.node.replicas if isinstance(contest.node, Process) else 0
    takes = [next((level for level in access.levels[pair.depth:] if isinstance(level, Consume)), None) for access in pair.accesses]
    network = data.kept.get(("network", id(pipeline)))
    if not isinstance(network, Network):
        network = data.kept[("network", id(pipeline))] = network_of(pipeline, data.depths)
    return Order(tuple(_routes(contest, pipeline, network, pair, structure=data.structure)),
                 tuple(chains_of(network, pair, structure=data.structure)), network.origins,
                 same if None not in takes and takes[0] is takes[1] else 0)


def _routes(contest: Contest, pipeline: Pipeline, network: Network, pair: Pair, *, structure: bool) -> Iterator[Route]:
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
        for hops, sent in _back(network, second.levels[pair.depth + 1:], (), frozenset()):
            around = _around_both(path, sent.path) if sent.process is home else None
            if not structure and not (isinstance(sent.statement, Send) and first.statement.handle in sent.statement.after):
                continue
            if around is not None and _is_one(home, around):
                turns = tuple(_turn(network, item) for item in around if isinstance(item, Consume))
                if None not in turns:
                    loops = tuple(item for item in around if isinstance(item, Loop))
                    yield Route(side, hops, loops, tuple(turn for turn in turns if turn is not None))
        if home.replicas == 1 and _event_between(pipeline, home, path, second.levels[pair.depth], second.statement):
            yield Route(side)


def ordered_by_tokens(contest: Contest, pair: Pair, data: Data) -> bool:
    """Tell whether it is proved that tokens, credits or an event order two accesses wherever they touch the same element.

    One way of a token alone is looked at first, which is enough for most; then all that is known of both directions.
    """
    order = order_of(contest, pair, data)
    for route in order.routes:
        if _none_is_left(pair, data, Order((route,))):
            return True
    return bool(order.chains or order.replicas) and _none_is_left(pair, data, order)


def _none_is_left(pair: Pair, data: Data, order: Order) -> bool:
    question = Question(pair, data, pinned=False, order=order)
    question.guard()
    return is_apart(question)


def _back(network: Network, levels: tuple[Level, ...], hops: tuple[Hop, ...],
          seen: frozenset[int]) -> Iterator[tuple[tuple[Hop, ...], End]]:
    """Yield the sends that must have been, where all these levels are: of the tokens taken there, and of those taken before these."""
    for level in levels:
        if not isinstance(level, Consume | Receive) or level.channel in seen:
            continue
        sent = _only_send(network, level.channel)
        if sent is not None and isinstance(sent.statement, Send):
            further = (*hops, Hop(sent.levels, sent.statement.payload, level.vars))
            yield further, sent
            yield from _back(network, sent.levels, further, seen | {level.channel})


def _only_send(network: Network, channel: int) -> End | None:
    """Return what sends to a channel; None where that are several statements or processes."""
    sent = network.sends.get(channel)
    return sent if sent is not None and _is_one(sent.process, sent.levels) else None


def _is_one(process: Process, around: Iterable[object]) -> bool:
    """Tell whether what is inside these happens in one replica each time: a token is taken by one."""
    return process.replicas == 1 or any(isinstance(level, Consume) for level in around)


def _of_replicas(network: Network, pair: Pair) -> Iterator[Route]:
    ours, theirs = (next((level for level in access.levels[pair.depth:] if isinstance(level, Consume)), None) for access in pair.accesses)
    turn = _turn(network, ours) if ours is not None and ours is theirs else None
    if turn is not None:
        yield Route(0, turns=(turn,), replicas=True)


def _around_both(before: Path, after: Path) -> tuple[Loop | Consume, ...] | None:
    """Return what repeats both of two statements, where the first comes before the second each time; None where it does not."""
    around: list[Loop | Consume] = []
    for (item, here), (other, there) in zip(before, after, strict=False):
        if item is not other or isinstance(item, Pipeline):
            return None
        if here != there:
            return tuple(around) if isinstance(item, Sequence) and here < there else None
        if isinstance(item, Loop | Consume):
            around.append(item)
    return None


def _turn(network: Network, consumer: Consume) -> tuple[Hop, ...] | None:
    """Return what tells one turn of a consumer from another: the loops around the send of its token, and so on from there."""
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


def _event_between(pipeline: Pipeline, home: Process, path: Path, other: Level, statement: object) -> bool:
    """Tell whether an event of a process, which happens once, comes after a statement, and another one waits for it before its own."""
    theirs = path_to(other.body, statement) if isinstance(other, Process) else None
    if not isinstance(other, Process) or not theirs:
        return False
    once = [item.event for item in home.body.items[path[0][1] + 1:] if isinstance(item, RecordEvent)]
    awaited = {item.event for item in other.body.items[:theirs[0][1]] if isinstance(item, AwaitEvent)}
    return any(event in awaited and sum(_records(process.body, event) for process in pipeline.processes) == 1 for event in once)


def _records(item: Item, event: int) -> int:
    """Count the statements that record an event."""
    return sum(isinstance(inner, RecordEvent) and inner.event == event for inner in items_in(item))
