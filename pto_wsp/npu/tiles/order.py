"""Find the ordering needs among the children of a block, and a small set of flags and barriers that meets them.

A need (i, P, j, Q, d) states that all work of pipe P up to child i completes before pipe Q starts child j, d iterations of the loop later.
A flag set after child i and awaited before child j gives exactly that, and more: pipes run in order, so needs often follow from others.
`Graph.reach` computes the transitive closure by a shortest-path walk over guards; `meet_needs` adds guards and drops those that the others
imply.

Positions in an iteration are counted in eighths of a child; the `AT_...` constants are positions from a child's first eighth.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, assert_never

from pto_wsp.npu.isa.tile_program import For, Pipe
from pto_wsp.npu.tiles.touches import Place, Rect, Touch, overlap
from pto_wsp.values import dataclass

PARTS = 8
AT_WAIT = 0           # flags awaited before the child; flags around an outermost loop are first set after these
AT_WORK = 2           # the child's own work; flags around an outermost loop are last set after this
AT_INSIDE = 3         # a pipe that has waited inside an outermost loop before its first work there
AT_LEFT = 4           # a pipe that has waited for the flags that an outermost loop leaves set
AT_SET = 7            # flags set after the child

SELF_ORDERED = frozenset({Pipe.S, Pipe.M})       # pipes whose instructions each see the results of the previous ones


@dataclass(frozen=True, slots=True)
class PipeNeed:
    """Pipe `first` completes its work up to child `start` before pipe `then` starts child `end`, `distance` iterations later."""

    start: int
    first: Pipe
    end: int
    then: Pipe
    distance: int = 0


@dataclass(frozen=True, slots=True)
class PipeBarrier:
    """The pipe completes its work before child `gap`."""

    gap: int
    pipe: Pipe


Guard: TypeAlias = "PipeNeed | PipeBarrier | Across"        # a `PipeNeed` as a guard is the flag that meets the need


@dataclass(frozen=True, slots=True)
class Across:
    """An ordering that flags inside a child, or around an outermost loop, give its block.

    Pipe `first` up to `start` before pipe `then` from `end` on, both in eighths of a child.
    """

    start: int
    first: Pipe
    end: int
    then: Pipe


Pairs: TypeAlias = frozenset[tuple[Pipe, Pipe]]


@dataclass(frozen=True, slots=True)
class Inner:
    """The ordering of pipe pairs (P, Q) that the guards inside a child give.

    `ends`: P's work inside completes before Q leaves the child. `begins`: P's earlier work completes before Q's first work inside.
    `through`: P's earlier work completes before Q leaves the child.
    """

    ends: Pairs = frozenset()
    begins: Pairs = frozenset()
    through: Pairs = frozenset()


_LEAF = Inner()


def find_needs(touched: Sequence[Sequence[Touch]], loop: For | None, iterations: int, inner: Mapping[int, Inner]) -> tuple[PipeNeed, ...]:
    """Return the needs among children by the memory they touch; in a loop, across up to `iterations` iterations too.

    For every place, the last touch of each pipe is kept: earlier ones follow from the last one, as a pipe runs in order.
    """
    n = len(touched)
    last: dict[Place, dict[tuple[Pipe, bool, int | None], list[int]]] = {}
    latest: dict[tuple[int, Pipe, Pipe, int], int] = {}
    for iteration in range(iterations + 1):
        for at, touches in enumerate(touched):
            here = [(touch, touch.in_iteration(loop, iteration)) for touch in touches]
            if iteration == iterations:
                for touch, place in here:
                    _meet(touch, place, iteration * n + at, n, last, inner, latest)
            for touch, place in here:
                before = last.setdefault(place, {}).setdefault((touch.pipe, touch.writes, touch.home), [])
                if not inner.get(at, _LEAF).ends:
                    before.clear()          # the earlier touches of this pipe come before this one anyway
                before.append(iteration * n + at)
    return tuple(PipeNeed(start, first, end, then, away) for (end, first, then, away), start in latest.items())


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
                if not (done and away):     # else the loop's own body has met the need: its flags stay set between runs of the loop
                    key = (position % n, pipe, touch.pipe, away)
                    found[key] = max(found.get(key, -1), before % n)
                if not ends:
                    break


@dataclass(slots=True)
class Graph:
    """The guards of a block of `n` children. `repeats`: the block is a loop body.

    `parity`: that loop is nested in another one, so that an order that holds across two iterations may not hold across two runs of the
    loop.
    """

    n: int
    repeats: bool
    parity: bool
    edges: dict[_Key, list[tuple[int, int, Guard]]] = field(default_factory=dict)   # source and target positions; sorted by both

    def add(self, guard: Guard) -> None:
        """Add a guard. Of flags between the same pipes over equally many iterations, one set later is awaited later."""
        key, edge = _edge(guard)
        insort(self.edges.setdefault(key, []), edge, key=lambda one: one[0])

    def remove(self, guard: Guard) -> None:
        """Remove a guard."""
        key, edge = _edge(guard)
        self.edges[key].remove(edge)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Return all guards."""
        return tuple(guard for edges in self.edges.values() for _, _, guard in edges)

    def reach(self, start: Pipe, at: int, leap: int = 0) -> dict[Pipe, int]:
        """Return the earliest position of each pipe that surely follows the work of `start` before `at`.

        `leap`: use only flags across that number of iterations, and within one iteration.
        """
        reached: dict[Pipe, int] = {}
        usable = {start: at}
        todo = [start]
        period = PARTS * self.n
        while todo:
            pipe = todo.pop()
            for (first, then, iterations, _), edges in self.edges.items():
                if first is not pipe or (leap and iterations not in (0, leap)):
                    continue
                target = self._first(edges, usable[pipe], period, not leap)
                if target is None:
                    continue
                target += iterations * period
                if target < reached.get(then, target + 1):
                    reached[then] = target
                if target < usable.get(then, target + 1):
                    usable[then] = target
                    todo.append(then)
        return reached

    def _first(self, edges: Sequence[tuple[int, int, Guard]], at: int, period: int, onwards: bool) -> int | None:
        """Return the position at which the first flag set at or after `at` is awaited; `onwards`: look in the next iteration too."""
        iteration = max(0, at // period) if self.repeats and period else 0
        for ahead in (iteration, iteration + 1) if self.repeats and onwards else (iteration,):
            index = bisect_left(edges, at - ahead * period, key=lambda one: one[0])
            if index < len(edges):
                return edges[index][1] + ahead * period
        return None

    def meets(self, need: PipeNeed) -> bool:
        """Return whether the guards meet a need."""
        return self._follows(need, AT_WORK, AT_INSIDE)

    def implies(self, flag: PipeNeed) -> bool:
        """Return whether the other guards give all that a flag gives, from its set to its wait."""
        return self._follows(flag, AT_SET, AT_WAIT)

    def _follows(self, need: PipeNeed, behind: int, front: int) -> bool:
        at = PARTS * need.start + behind

        def known(iterations: int, leap: int = 0) -> bool:
            limit = PARTS * (need.end + iterations * self.n) + front
            return self.reach(need.first, at, leap).get(need.then, limit + 1) <= limit

        if need.distance >= 2 and self.parity:
            return known(1) or known(need.distance, leap=need.distance)
        return known(need.distance)


_Key: TypeAlias = tuple[Pipe, Pipe, int, bool]      # pipes, iterations, and whether the guard comes from a loop inside


def _edge(guard: Guard) -> tuple[_Key, tuple[int, int, Guard]]:
    match guard:
        case PipeBarrier(gap, pipe):
            return (pipe, pipe, 0, False), (PARTS * gap - 1, PARTS * gap, guard)
        case Across(start, first, end, then):
            return (first, then, 0, True), (start, end, guard)
        case PipeNeed(start, first, end, then, iterations):
            return (first, then, iterations, False), (PARTS * start + AT_SET, PARTS * end + AT_WAIT, guard)
        case _:
            assert_never(guard)


def meet_needs(needs: Iterable[PipeNeed], graph: Graph) -> None:
    """Add guards that meet the needs to a graph that has only the guards of inner loops; none is implied by the others."""
    open_needs = [need for need in needs if not graph.meets(need)]
    among = [need for need in open_needs if need.first is need.then]
    flags = _undominated(need for need in open_needs if need.first is not need.then)
    for flag in flags:
        graph.add(flag)
    barriers = _barriers(among)
    for barrier in barriers:
        graph.add(barrier)
    for barrier in (one for one in barriers if one.pipe is not Pipe.V):     # flags that exist anyway may make these superfluous
        _drop_barrier(barrier, among, graph)
    for flag in sorted(flags, key=lambda one: (-(one.end + one.distance * graph.n - one.start), _order(one))):
        graph.remove(flag)
        if not graph.implies(flag):
            graph.add(flag)
    for barrier in (one for one in barriers if one.pipe is Pipe.V):
        _drop_barrier(barrier, among, graph)


def _drop_barrier(barrier: PipeBarrier, among: Iterable[PipeNeed], graph: Graph) -> None:
    graph.remove(barrier)
    stabbed = (need for need in among if need.first is barrier.pipe and _stabs(barrier, need))
    if not all(graph.meets(need) for need in stabbed):
        graph.add(barrier)


def _order(need: PipeNeed) -> tuple[int, int, int, str, str]:
    return need.end, need.distance, need.start, need.first.value, need.then.value


def _undominated(needs: Iterable[PipeNeed]) -> list[PipeNeed]:
    """Return the needs without those that enclose another need between the same pipes."""
    kept: list[PipeNeed] = []
    latest: dict[tuple[Pipe, Pipe, int], int] = {}
    for need in sorted(needs, key=lambda one: (one.end, -one.start, _order(one))):
        key = (need.first, need.then, need.distance)
        if need.start > latest.get(key, -1):
            latest[key] = need.start
            kept.append(need)
    return kept


def _stabs(barrier: PipeBarrier, need: PipeNeed) -> bool:
    if need.distance:
        return barrier.gap > need.start or barrier.gap <= need.end
    return need.start < barrier.gap <= need.end


def _barriers(among: Iterable[PipeNeed]) -> list[PipeBarrier]:
    """Return barriers that meet the needs within pipes, each as late as its first need allows (interval stabbing)."""
    chosen: list[PipeBarrier] = []
    latest: dict[Pipe, PipeBarrier] = {}
    for need in sorted(among, key=lambda one: (one.distance, *_order(one))):
        # Needs within an iteration come first, by their ends: the latest barrier of the pipe is the one nearest to the end.
        near = [one for one in chosen if one.pipe is need.first] if need.distance else [latest[need.first]] if need.first in latest else []
        if not any(_stabs(one, need) for one in near):
            latest[need.first] = PipeBarrier(need.end, need.first)
            chosen.append(latest[need.first])
    return chosen


Works: TypeAlias = Mapping[Pipe, tuple[int, ...]]       # the children in which a pipe works


def inside(graph: Graph, works: Works, inner: Mapping[int, Inner]) -> Inner:
    """Return the ordering that a block's guards, and those of inner blocks, give to the outside."""
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
            return False        # continue with the children before: this one may have no iteration, or not run
    return True


def _begins(first: Pipe, then: Pipe, graph: Graph, works: Works, inner: Mapping[int, Inner]) -> bool:
    reached = graph.reach(first, -1)
    for child in works[then]:
        if reached.get(then, PARTS * child + PARTS) <= PARTS * child + AT_INSIDE:
            return True
        there = {first, *(pipe for pipe, where in reached.items() if where <= PARTS * child + AT_WAIT)}
        if not any((pipe, then) in inner.get(child, _LEAF).begins for pipe in there):
            return False
    return True


def either(sides: Sequence[tuple[Inner, Works]]) -> Inner:
    """Return the ordering that holds for either side of a branch."""
    ends = {pair for inner, _ in sides for pair in inner.ends if all(pair in other.ends for other, works in sides if pair[0] in works)}
    begins = {pair for inner, _ in sides for pair in inner.begins
              if all(pair in other.begins for other, works in sides if pair[1] in works)}
    return Inner(frozenset(ends), frozenset(begins), frozenset.intersection(*(inner.through for inner, _ in sides)))


def through_branch(child: int, inner: Inner) -> list[Across]:
    """Return the ordering that flags inside a branch give its block."""
    return [Across(PARTS * child, first, PARTS * child + AT_LEFT, then) for first, then in sorted(inner.through, key=str)]


def across_loop(child: int, flags: Iterable[PipeNeed], works: Works) -> list[Across]:
    """Return the ordering that the flags of an outermost loop give its block.

    The flags are set once before the loop and awaited once after it, even if the loop has no iteration.
    """
    start, orderings = PARTS * child, []
    for flag in (one for one in flags if one.distance):
        waits_first = flag.then not in works or flag.end <= works[flag.then][0]
        orderings.append(Across(start, flag.first, start + (AT_INSIDE if waits_first else AT_LEFT), flag.then))
        if flag.first not in works or flag.start >= works[flag.first][-1]:
            orderings.append(Across(start + AT_WORK, flag.first, start + AT_LEFT, flag.then))
    return orderings
