"""What must come before what among the children of a block, and the fewest flags and barriers that see to it.

A need (i, P, j, Q, d) says: what pipe P was given up to child i is done before pipe Q starts child j, d turns of the loop later. A flag
set behind child i and awaited in front of child j gives just that, and what follows from it: pipes take their work in order, so one
need often follows from others. Places in a turn are counted in eighths of a child, `AT_...` from the child's first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, assert_never

from pto_wsp.expr.tile_program import Loop, Pipe
from pto_wsp.plan.npu.tiles.touches import Place, Rect, Touch, overlap
from pto_wsp.values import dataclass

PARTS = 8
AT_WAIT = 0           # flags awaited in front of the child; flags of an outermost loop are set first behind these
AT_WORK = 2           # what the child does; flags of an outermost loop are set last behind this
AT_INSIDE = 3         # a pipe that has waited in an outermost loop before its first work there
AT_LEFT = 4           # a pipe that has waited for the flags that an outermost loop leaves
AT_SET = 7            # flags set behind the child

SELF_ORDERED = frozenset({Pipe.S, Pipe.M})       # each of their instructions finds the results of those before it


@dataclass(frozen=True, slots=True)
class Need:
    """Pipe `first` up to child `start` before pipe `then` from child `end` on, `turns` turns later."""

    start: int
    first: Pipe
    end: int
    then: Pipe
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Barrier:
    """The pipe finishes what it has before child `gap`."""

    gap: int
    pipe: Pipe


Guard: TypeAlias = "Need | Barrier | Across"        # a need as a guard: the flag that meets it


@dataclass(frozen=True, slots=True)
class Across:
    """What flags inside a child, or those around an outermost loop, say in its block: `first` from `start` on before `then` from `end`
    on, in parts of a turn."""

    start: int
    first: Pipe
    end: int
    then: Pipe


Pairs: TypeAlias = frozenset[tuple[Pipe, Pipe]]


@dataclass(frozen=True, slots=True)
class Inner:
    """What the guards inside a child say of pairs of pipes (P, Q). `ends`: what P does in it is done before Q leaves it; `begins`: what P
    was given before it is done before Q does anything in it. `through`: what P was given before it is done before Q leaves it."""

    ends: Pairs = frozenset()
    begins: Pairs = frozenset()
    through: Pairs = frozenset()


_LEAF = Inner()


def find_needs(touched: Sequence[Sequence[Touch]], loop: Loop | None, turns: int, inner: Mapping[int, Inner]) -> tuple[Need, ...]:
    """Return the needs among children by what they touch; in a loop, those across up to `turns` turns too."""
    n = len(touched)
    last: dict[Place, dict[tuple[Pipe, bool, int | None], list[int]]] = {}
    found: dict[tuple[int, Pipe, Pipe, int], int] = {}
    for turn in range(turns + 1):
        for at, touches in enumerate(touched):
            here = [(touch, touch.in_turn(loop, turn)) for touch in touches]
            if turn == turns:
                for touch, place in here:
                    _meet(touch, place, turn * n + at, n, last, inner, found)
            for touch, place in here:
                before = last.setdefault(place, {}).setdefault((touch.pipe, touch.writes, touch.home), [])
                if not inner.get(at, _LEAF).ends:
                    before.clear()          # what comes after this comes after those
                before.append(turn * n + at)
    return tuple(Need(start, first, end, then, away) for (end, first, then, away), start in found.items())


def _meet(touch: Touch, place: Place, position: int, n: int, last: Mapping[Place, Mapping[tuple[Pipe, bool, int | None], list[int]]],
          inner: Mapping[int, Inner], found: dict[tuple[int, Pipe, Pipe, int], int]) -> None:
    for other, uses in last.items():
        if not overlap(place, other):
            continue
        for (pipe, writes, home), positions in uses.items():
            if not (writes or touch.writes) or (pipe is touch.pipe and pipe in SELF_ORDERED):
                continue
            if (pipe, touch.pipe) in inner.get(position % n, _LEAF).begins:
                continue
            done = home is not None and home == touch.home and not isinstance(place, Rect)
            for before in reversed(positions):
                away = position // n - before // n
                ends = inner.get(before % n, _LEAF).ends
                if (pipe, touch.pipe) in ends:
                    continue
                if not (done and away):     # else the loop's own body has met it: its flags hold from one run of it to the next
                    key = (position % n, pipe, touch.pipe, away)
                    found[key] = max(found.get(key, -1), before % n)
                if not ends:
                    break


@dataclass(slots=True)
class Graph:
    """The guards of a block with `n` children. `repeats`: it is a loop's body. `parity`: that loop stands in another one, so that what
    holds from every second turn to the next may not hold from one run of the loop to the next."""

    n: int
    repeats: bool
    parity: bool
    edges: dict[_Key, list[tuple[int, int, Guard]]] = field(default_factory=dict)   # source, target; sorted by both

    def add(self, guard: Guard) -> None:
        """Put a guard in. Flags between the same pipes, as far apart in turns, are such that a later one ends later."""
        key, edge = _edge(guard)
        insort(self.edges.setdefault(key, []), edge, key=lambda one: one[0])

    def remove(self, guard: Guard) -> None:
        """Take a guard out."""
        key, edge = _edge(guard)
        self.edges[key].remove(edge)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """All guards."""
        return tuple(guard for edges in self.edges.values() for _, _, guard in edges)

    def reach(self, start: Pipe, at: int, leap: int = 0) -> dict[Pipe, int]:
        """Return from where on each pipe comes after what `start` has done before `at`. `leap`: only by flags over so many turns, and by
        what follows within a turn."""
        found: dict[Pipe, int] = {}
        usable = {start: at}
        todo = [start]
        period = PARTS * self.n
        while todo:
            pipe = todo.pop()
            for (first, then, turns, _), edges in self.edges.items():
                if first is not pipe or (leap and turns not in (0, leap)):
                    continue
                target = self._first(edges, usable[pipe], period, not leap)
                if target is None:
                    continue
                target += turns * period
                if target < found.get(then, target + 1):
                    found[then] = target
                if target < usable.get(then, target + 1):
                    usable[then] = target
                    todo.append(then)
        return found

    def _first(self, edges: Sequence[tuple[int, int, Guard]], at: int, period: int, onwards: bool) -> int | None:
        """Return where the first flag set at or behind `at` is awaited; `onwards`: in the next turn if there is none in this one."""
        turn = max(0, at // period) if self.repeats and period else 0
        for ahead in (turn, turn + 1) if self.repeats and onwards else (turn,):
            index = bisect_left(edges, at - ahead * period, key=lambda one: one[0])
            if index < len(edges):
                return edges[index][1] + ahead * period
        return None

    def meets(self, need: Need) -> bool:
        """Tell whether the guards meet a need."""
        return self._follows(need, AT_WORK, AT_INSIDE)

    def implies(self, flag: Need) -> bool:
        """Tell whether the guards say all that a flag says: from its setting on, and from its waiting on."""
        return self._follows(flag, AT_SET, AT_WAIT)

    def _follows(self, need: Need, behind: int, front: int) -> bool:
        at = PARTS * need.start + behind

        def known(turns: int, leap: int = 0) -> bool:
            limit = PARTS * (need.end + turns * self.n) + front
            return self.reach(need.first, at, leap).get(need.then, limit + 1) <= limit

        if need.turns >= 2 and self.parity:
            return known(1) or known(need.turns, leap=need.turns)
        return known(need.turns)


_Key: TypeAlias = tuple[Pipe, Pipe, int, bool]      # turns, and whether it is of a loop inside


def _edge(guard: Guard) -> tuple[_Key, tuple[int, int, Guard]]:
    match guard:
        case Barrier(gap, pipe):
            return (pipe, pipe, 0, False), (PARTS * gap - 1, PARTS * gap, guard)
        case Across(start, first, end, then):
            return (first, then, 0, True), (start, end, guard)
        case Need(start, first, end, then, turns):
            return (first, then, turns, False), (PARTS * start + AT_SET, PARTS * end + AT_WAIT, guard)
        case _:
            assert_never(guard)


def meet_needs(needs: Iterable[Need], graph: Graph) -> None:
    """Put guards into a graph that has none but those of loops inside: enough for the needs, none that the others make superfluous."""
    open_needs = [need for need in needs if not graph.meets(need)]
    among = [need for need in open_needs if need.first is need.then]
    flags = _undominated(need for need in open_needs if need.first is not need.then)
    for flag in flags:
        graph.add(flag)
    barriers = _barriers(among)
    for barrier in barriers:
        graph.add(barrier)
    for barrier in (one for one in barriers if one.pipe is not Pipe.V):     # flags that are there anyway do for these
        _drop_barrier(barrier, among, graph)
    for flag in sorted(flags, key=lambda one: (-(one.end + one.turns * graph.n - one.start), _order(one))):
        graph.remove(flag)
        if not graph.implies(flag):
            graph.add(flag)
    for barrier in (one for one in barriers if one.pipe is Pipe.V):
        _drop_barrier(barrier, among, graph)


def _drop_barrier(barrier: Barrier, among: Iterable[Need], graph: Graph) -> None:
    graph.remove(barrier)
    stabbed = (need for need in among if need.first is barrier.pipe and _stabs(barrier, need))
    if not all(graph.meets(need) for need in stabbed):
        graph.add(barrier)


def _order(need: Need) -> tuple[int, int, int, str, str]:
    return need.end, need.turns, need.start, need.first.value, need.then.value


def _undominated(needs: Iterable[Need]) -> list[Need]:
    """Leave out needs that lie around another between the same pipes."""
    kept: list[Need] = []
    latest: dict[tuple[Pipe, Pipe, int], int] = {}
    for need in sorted(needs, key=lambda one: (one.end, -one.start, _order(one))):
        key = (need.first, need.then, need.turns)
        if need.start > latest.get(key, -1):
            latest[key] = need.start
            kept.append(need)
    return kept


def _stabs(barrier: Barrier, need: Need) -> bool:
    if need.turns:
        return barrier.gap > need.start or barrier.gap <= need.end
    return need.start < barrier.gap <= need.end


def _barriers(among: Iterable[Need]) -> list[Barrier]:
    """Return barriers that meet the needs within pipes: each as late as its first need allows."""
    chosen: list[Barrier] = []
    for need in sorted(among, key=lambda one: (one.turns, *_order(one))):
        if not any(one.pipe is need.first and _stabs(one, need) for one in chosen):
            chosen.append(Barrier(need.end, need.first))
    return chosen


Works: TypeAlias = Mapping[Pipe, tuple[int, ...]]       # the children that a pipe works in


def inside(graph: Graph, works: Works, inner: Mapping[int, Inner]) -> Inner:
    """Return what the guards of a block, and of those inside it, say outside it."""
    pairs = [(first, then) for first in Pipe for then in Pipe]
    return Inner(frozenset(pair for pair in pairs if pair[0] in works and _ends(*pair, graph, works, inner)),
                 frozenset(pair for pair in pairs if pair[1] in works and _begins(*pair, graph, works, inner)),
                 frozenset((first, then) for first in Pipe for then, where in graph.reach(first, -1).items()
                           if then is not first and where < PARTS * graph.n))


def _ends(first: Pipe, then: Pipe, graph: Graph, works: Works, inner: Mapping[int, Inner]) -> bool:
    limit = PARTS * graph.n
    for child in reversed(works[first]):
        if graph.reach(first, PARTS * child + AT_WORK).get(then, limit) < limit:
            return True
        there = {pipe for pipe in Pipe if (first, pipe) in inner.get(child, _LEAF).ends}
        if then not in there and not any(graph.reach(pipe, PARTS * child + AT_LEFT).get(then, limit) < limit for pipe in there):
            return False        # else on to those before: this child may have no turn, or not run
    return True


def _begins(first: Pipe, then: Pipe, graph: Graph, works: Works, inner: Mapping[int, Inner]) -> bool:
    known = graph.reach(first, -1)
    for child in works[then]:
        if known.get(then, PARTS * child + PARTS) <= PARTS * child + AT_INSIDE:
            return True
        there = {first, *(pipe for pipe, where in known.items() if where <= PARTS * child + AT_WAIT)}
        if not any((pipe, then) in inner.get(child, _LEAF).begins for pipe in there):
            return False
    return True


def either(sides: Sequence[tuple[Inner, Works]]) -> Inner:
    """Return what holds whichever side of a branch runs."""
    ends = {pair for inner, _ in sides for pair in inner.ends if all(pair in other.ends for other, works in sides if pair[0] in works)}
    begins = {pair for inner, _ in sides for pair in inner.begins
              if all(pair in other.begins for other, works in sides if pair[1] in works)}
    return Inner(frozenset(ends), frozenset(begins), frozenset.intersection(*(inner.through for inner, _ in sides)))


def through_branch(child: int, inner: Inner) -> list[Across]:
    """Return what the flags inside a branch say around it."""
    return [Across(PARTS * child, first, PARTS * child + AT_LEFT, then) for first, then in sorted(inner.through, key=str)]


def across_loop(child: int, flags: Iterable[Need], works: Works) -> list[Across]:
    """Return what the flags of an outermost loop, which is a child of its block, say there: they are set once before it and awaited
    once behind it, whether it has turns or not."""
    start, found = PARTS * child, []
    for flag in (one for one in flags if one.turns):
        waits_first = flag.then not in works or flag.end <= works[flag.then][0]
        found.append(Across(start, flag.first, start + (AT_INSIDE if waits_first else AT_LEFT), flag.then))
        if flag.first not in works or flag.start >= works[flag.first][-1]:
            found.append(Across(start + AT_WORK, flag.first, start + AT_LEFT, flag.then))
    return found
