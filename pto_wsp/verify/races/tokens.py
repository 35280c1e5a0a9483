"""Which tasks of different processes tokens and events may order, or keep from being there at once."""

from __future__ import annotations

from pto_wsp.plan.communication import communicates
from pto_wsp.plan.model import Consume, Loop, Process, Receive, Sides
from pto_wsp.verify.races.contests import Contest
from pto_wsp.verify.races.question import Pair


def perhaps_ordered(contest: Contest, pair: Pair) -> bool:
    """Tell whether two accesses that touch the same element may be ordered, or never happen: what tokens carry is known at run time.

    Not between tasks of which one stands in a process that neither sends, takes nor waits: nothing tells it about the other.
    """
    if isinstance(contest.node, Loop | Sides):
        return any(isinstance(level, Consume | Receive) for access in pair.accesses for level in access.levels[contest.depth:])
    homes = [level for access in pair.accesses for level in access.levels if isinstance(level, Process)]
    return all(communicates(home.body) for home in homes)
