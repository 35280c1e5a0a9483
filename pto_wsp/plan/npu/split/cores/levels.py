"""Which part each statement of a kernel runs in: parts run one after the other, cores in turn.

A part holds all that its core can do before it needs something of the other one. What rests on little is put off to the part that uses
it, so that less crosses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.ops.entry import Unit
from pto_wsp.plan.npu.split.circles.groups import Group, groups_of
from pto_wsp.plan.npu.split.cores.flow import Flow
from pto_wsp.values import dataclass

_TURNS = 8     # how often a loop is taken to run, where values that cross are weighed


@dataclass(frozen=True, slots=True)
class _Need:
    """A group comes after another, or in its part; `least`: by how many levels at least."""

    before: int
    after: int
    least: int


def levels_of(flow: Flow) -> Mapping[int, int]:
    """Return the level of each node of a flow without circles, by id() of its statement: nodes of one level are one part, and lower
    levels run first."""
    edges = tuple(flow.edges())
    groups = groups_of(flow, edges)
    number = {id(leaf.stmt): at for at, group in enumerate(groups) for leaf in group.members}
    needs = tuple(dict.fromkeys(
        _Need(number[id(e.first.stmt)], number[id(e.then.stmt)], 1 if e.chained or flow.unit(e.first) is not flow.unit(e.then) else 0)
        for e in edges if number[id(e.first.stmt)] != number[id(e.then.stmt)]))
    traffic = _Traffic(flow, groups, number)
    found = [_put_off(traffic, groups, needs, _levels(groups, needs, first)) for first in (Unit.CUBE, Unit.VECTOR)]
    best = min(found, key=lambda levels: len(set(levels)))
    order = {level: at for at, level in enumerate(sorted(set(best)))}
    return {id(leaf.stmt): order[best[at]] for at, group in enumerate(groups) for leaf in group.members}


def _levels(groups: Sequence[Group], needs: Sequence[_Need], first: Unit) -> list[int]:
    """Return the lowest level of each group; even levels are of the core `first`."""
    levels: list[int] = []
    earlier: list[list[_Need]] = [[] for _ in groups]
    for need in needs:
        earlier[need.after].append(need)
    for at, group in enumerate(groups):      # what a group depends on stands before it
        least = max((levels[need.before] + need.least for need in earlier[at]), default=0)
        levels.append(_of_core(least, group.unit, first, 1))
    return levels


def _of_core(level: int, unit: Unit, first: Unit, step: int) -> int:
    return level if (level % 2 == 0) == (unit is first) else level + step


class _Traffic:
    """Who gives what to whom, by number of the group."""

    def __init__(self, flow: Flow, groups: Sequence[Group], number: Mapping[int, int]) -> None:
        self.users: dict[int, set[int]] = {}                      # by id() of the statement that gives a value
        self.bytes: dict[int, int] = {}                           # of what it gives, over all turns
        self.concerned: dict[int, set[int]] = {at: set() for at in range(len(groups))}   # statements that a group is, or takes from
        self.number = number
        for at, group in enumerate(groups):
            for leaf in group.members:
                self.concerned[at].add(id(leaf.stmt))
                for value, maker in flow.sources(leaf, group.unit):
                    self.users.setdefault(id(maker.stmt), set()).add(at)
                    self.bytes[id(maker.stmt)] = value.type.size_bytes * _TURNS ** len(maker.loops)
                    self.concerned[at].add(id(maker.stmt))

    def crossing(self, levels: Sequence[int], group: int) -> int:
        """Return the bytes that cross of what a group gives and takes."""
        return sum(self.bytes[maker] for maker in self.concerned[group]
                   if any(levels[user] != levels[self.number[maker]] for user in self.users.get(maker, ())))


def _put_off(traffic: _Traffic, groups: Sequence[Group], needs: Sequence[_Need], levels: list[int]) -> list[int]:
    """Move groups to the part that uses them, from the last on, where no more crosses then than before."""
    now = levels
    later: list[list[_Need]] = [[] for _ in groups]
    for need in needs:
        later[need.before].append(need)
    for at in reversed(range(len(groups))):
        limits = [now[need.after] - need.least for need in later[at]]
        latest = min(limits, default=now[at])
        latest -= (latest - now[at]) % 2
        if latest > now[at] and latest in now:
            moved = [*now[:at], latest, *now[at + 1:]]
            if traffic.crossing(moved, at) <= traffic.crossing(now, at):
                now = moved
    return now
