"""Chains: order between processes by numbers of tokens, forwards along a channel and back by its credits.

Two orders hold between the sender and the taker of a channel of depth d: send k comes before take k, and take k comes before send k + d,
whose slot it frees. With program order on either side they order two accesses a and b: let a be the sender's, before its send number s,
and b the taker's, behind its take number t. Then a comes before b where s <= t. Let b be before take t' and a behind send s': then b
comes before a where t' + d <= s'. So a ring of r buffers is safe behind a channel of depth r - 2: one buffer is being written, one is
being read. Through further processes the numbers are counted on. An event is a channel without credits.

What is proved so is proved for all sizes: positions are affine, depths are numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pto_wsp.plan.model import AwaitEvent, Consume, Pipeline, Process, Receive, RecordEvent, Send, Submit
from pto_wsp.values import dataclass
from pto_wsp.verify.races.order import Chain, Link, Origin
from pto_wsp.verify.races.positions import End, ends_in, last_before, next_behind, next_of, only_end, path_to
from pto_wsp.verify.races.question import Pair

_MOST_PROCESSES = 5      # on a chain
_MOST_CHAINS = 12        # of one pair


@dataclass(frozen=True, slots=True, eq=False)
class _Hop:
    """From a token at one end to the one at the other end that comes after it, `shift` further on."""

    leaves: End
    arrives: End
    shift: int


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """What is known of a pipeline's channels: the hops along those that can be counted, and events; of each that one statement sends to,
    that statement, and where its tokens come from."""

    hops: tuple[_Hop, ...]
    sends: Mapping[int, End]
    origins: Mapping[int, Origin]


def network_of(pipeline: Pipeline, depths: Sequence[int]) -> Network:
    """Return what is counted of a pipeline. `depths`: of the plan's channels."""
    sends = {channel: sent for channel in pipeline.channels if (sent := only_end(pipeline, (Send,), channel)) is not None}
    return Network(_hops(pipeline, depths), sends, _origins(pipeline))


def chains_of(network: Network, pair: Pair, *, structure: bool) -> Iterator[Chain]:
    """Yield the chains between two accesses in processes, either way, short ones first."""
    found: list[Chain] = []
    for side in (0, 1):
        home, other = (pair.accesses[at].levels[pair.depth] for at in (side, 1 - side))
        if isinstance(home, Process) and isinstance(other, Process):
            found += (chain for way in _ways(network.hops, home, other)
                      if (chain := _chain(way, side, pair, structure=structure)) is not None)
    found.sort(key=lambda chain: len(chain.links))
    yield from found[:_MOST_CHAINS]


def _origins(pipeline: Pipeline) -> Mapping[int, Origin]:
    found: dict[int, Origin] = {}
    for channel in pipeline.channels:
        sent, taken = only_end(pipeline, (Send,), channel), only_end(pipeline, (Receive, Consume), channel)
        if sent is None or not isinstance(sent.statement, Send):
            continue
        counted = taken is not None and sent.is_countable and taken.is_countable
        found[channel] = Origin(sent.levels, sent.statement.payload, sent.position if counted else None,
                                taken.position if counted and taken is not None else None)
    return found


def _hops(pipeline: Pipeline, depths: Sequence[int]) -> tuple[_Hop, ...]:
    hops: list[_Hop] = []
    for channel in pipeline.channels:
        sent, taken = only_end(pipeline, (Send,), channel), only_end(pipeline, (Receive, Consume), channel)
        if sent is not None and taken is not None and sent.is_countable and taken.is_countable:
            hops += (_Hop(sent, taken, 0), _Hop(taken, sent, depths[channel]))
    for event in pipeline.events:
        made = only_end(pipeline, (RecordEvent,), event)
        if made is None or not made.is_countable or made.process.replicas > 1:
            continue
        for process in pipeline.processes:
            waits = list(ends_in(process, (AwaitEvent,), event))
            if len(waits) == 1 and waits[0].is_countable and process.replicas == 1:
                hops.append(_Hop(made, waits[0], 0))
    return tuple(hops)


def _ways(hops: tuple[_Hop, ...], home: Process, other: Process, so_far: tuple[_Hop, ...] = ()) -> Iterator[tuple[_Hop, ...]]:
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


def _chain(way: tuple[_Hop, ...], side: int, pair: Pair, *, structure: bool) -> Chain | None:
    """Return a way between two accesses as a chain; None where program order at one of its ends, or on it, is not known."""
    first, second = pair.accesses[side].statement, pair.accesses[1 - side].statement
    if not isinstance(first, Submit) or not isinstance(second, Submit):
        return None
    begin, finish = path_to(way[0].leaves.process.body, first), path_to(way[-1].arrives.process.body, second)
    assert begin is not None and finish is not None
    start = next_behind(begin, way[0].leaves, first, structure=structure)
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
    return Chain(side, start.position, way[0].shift, tuple(links), end.position, stretch or end.stretch)
