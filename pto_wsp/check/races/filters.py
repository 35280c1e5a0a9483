"""Filter the pairs of a contest: yield only pairs that the solver must decide.

Unrolled bodies have thousands of accesses, of which most are far apart. Two filters run first. If all accesses have one of a few lines in
some dimension, the solver decides each pair of lines once, which may prove all pairs apart. Otherwise each access has an interval per
dimension, from constants alone, and a sweep yields the overlapping pairs.

`ordered_by_streams` adds the schedule's order: tasks of one stream run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from pto_wsp.check.affine.solve import Unsat, solve
from pto_wsp.check.races.accesses import Contest, SiteAccess, Taken, region_of
from pto_wsp.check.races.question import Data, Pair, Question
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Loop, Process, bound_vars
from pto_wsp.ir.intervals import Interval, interval
from pto_wsp.ir.plan import PlanLoop, Submit
from pto_wsp.ir.scalar import Scalar

_FEW_LINES = 4
_FEW_PAIRS = 16        # with fewer pairs the filters cost more than they save


def pairs_of(contest: Contest, data: Data) -> Iterator[Pair]:
    """Yield the pairs of a contest that the solver must decide: at least one access writes, and the regions may overlap."""
    groups = [list(group) if contest.pipeline is not None else _distinct(group) for group in contest.groups]
    loop = contest.node if isinstance(contest.node, Loop) else None
    if isinstance(contest.node, Loop | Process):
        meetings = [(groups[0], groups[0])]
    else:
        meetings = [(ours, theirs) for at, theirs in enumerate(groups) for ours in groups[:at]]
    for ours, theirs in meetings:
        yield from _meeting(ours, theirs, contest.depth, loop, data)


def pairs_among(accesses: tuple[SiteAccess, ...], depth: int, data: Data) -> Iterator[Pair]:
    """Yield the pairs of `accesses` that the solver must decide, each once, ordered or not; all share the levels before `depth`.

    At least one access of a pair writes, and the regions may overlap.
    """
    distinct = _distinct(accesses, lambda access: _meaning(access, depth, data))
    place = {id(access): number for number, access in enumerate(distinct)}
    for pair in _meeting(distinct, distinct, depth, None, data):
        if place[id(pair.first)] <= place[id(pair.second)]:
            yield pair


def _meeting(ours: list[SiteAccess], theirs: list[SiteAccess], depth: int, loop: PlanLoop | None, data: Data) -> Iterator[Pair]:
    if len(ours) * len(theirs) >= _FEW_PAIRS and _apart_in_one_dimension(ours, theirs, depth, loop, data):
        return
    for first, second in _overlapping(ours, theirs):
        if first.role.writes or second.role.writes:
            yield Pair(first, second, depth, loop)


def _place(access: SiteAccess) -> Hashable:
    return (access.view, access.combine, *map(id, access.levels))


def _distinct(accesses: tuple[SiteAccess, ...], key_of: Callable[[SiteAccess], Hashable] = _place) -> list[SiteAccess]:
    """Return one access for each view under the same levels, preferably a write.

    Not valid for processes, where the position relative to a send matters.
    """
    by_key: dict[Hashable, SiteAccess] = {}
    for access in accesses:
        key = key_of(access)
        existing = by_key.get(key)
        if existing is None or (access.role.writes and not existing.role.writes):
            by_key[key] = access
    return list(by_key.values())


def alike(contest: Contest, access: SiteAccess) -> tuple[SiteAccess, ...]:
    """Return the accesses of a contest for which `access` stands in `pairs_of`: those of one view under the same levels."""
    if contest.pipeline is not None:
        return (access,)
    group = next(group for group in contest.groups if any(other is access for other in group))
    return tuple(other for other in group if _place(other) == _place(access))


def _meaning(access: SiteAccess, depth: int, data: Data) -> Hashable:
    """Return a key that is equal for accesses with the same regions in the same iterations, up to the names of their loops.

    Such accesses come from a body that a Python loop unrolled. Values that may change over time, and token payloads, keep their identity.
    """
    names: dict[s.Scalar, s.Scalar] = {}
    levels: list[Hashable] = [id(level) for level in access.levels[:depth]]
    parts: list[s.Scalar] = []
    for level in access.levels[depth:]:
        match level:
            case Loop():
                parts += [level.start, level.stop, level.step, *(() if level.through is None else (level.through.value,))]
                names.update({var: s.Var("", -len(names) - 1 - k) for k, var in enumerate(bound_vars(level))})
                levels.append(level.through is None)
            case Taken():
                parts += [*(branch.condition for branch in level.refused), *(() if level.held is None else (level.held,))]
                levels.append((len(level.refused), level.held is None))
            case _:
                levels.append(id(level))
    region = region_of(access.view)
    lines = (*region.dims, *region.equal)
    parts += [*(line.start for line in lines), *region.extents]
    if any((isinstance(leaf, s.Element) and leaf.tensor.id in data.written) or isinstance(leaf, s.SlotValue | s.ReplicaIndex | s.TaskIndex)
           for part in parts for leaf in s.leaves(part)):
        return _place(access)
    return (access.combine, tuple(levels), tuple(s.substitute(part, names.get) for part in parts), tuple(line.terms for line in lines),
            len(region.equal))


def _apart_in_one_dimension(ours: list[SiteAccess], theirs: list[SiteAccess], depth: int, loop: PlanLoop | None, data: Data) -> bool:
    """Tell whether all pairs are apart in a dimension, seen from the levels that they share and the loop where they part alone."""
    for dim in range(ours[0].view.tensor.rank):
        lines = [_lines(accesses, dim, depth + (loop is not None)) for accesses in (ours, theirs)]
        if not lines[0] or not lines[1]:
            continue
        pairs = (Pair(first, second, depth, loop) for first, second in product(lines[0], lines[1]))
        if all(is_apart(Question(_cut_levels(pair), data, pinned=False, only=dim)) for pair in pairs):
            return True
    return False


def is_apart(question: Question) -> bool:
    """Tell whether a question is proved to have no solution."""
    return not question.is_large and isinstance(solve(question.system), Unsat)


def _lines(accesses: list[SiteAccess], dim: int, depth: int) -> list[SiteAccess]:
    """Return one access for each distinct line in a dimension; empty if there are many lines, or lines that depend on inner levels."""
    by_line: dict[object, SiteAccess] = {}
    for access in accesses:
        key = _line_key(access, dim, depth)
        if key is None:
            return []
        by_line.setdefault(key, access)
        if len(by_line) > _FEW_LINES:
            return []
    return list(by_line.values())


def _overlapping(ours: list[SiteAccess], theirs: list[SiteAccess]) -> Iterator[tuple[SiteAccess, SiteAccess]]:
    """Yield the pairs whose boxes overlap, in the order of the accesses.

    A sweep along the dimension with the most distinct intervals; `open_now` has the boxes of each side that contain the sweep position.
    """
    if len(ours) * len(theirs) < _FEW_PAIRS:
        yield from product(ours, theirs)
        return
    boxes = [[_box(access) for access in side] for side in (ours, theirs)]
    rank = len(boxes[0][0])
    dim = max(range(rank), key=lambda k: len({box[k] for side in boxes for box in side}))      # the most selective dimension
    there = [(side, number, box[dim]) for side in (0, 1) for number, box in enumerate(boxes[side]) if all(a <= b for a, b in box)]
    ends = [(low, 0, side, number) for side, number, (low, _) in there] + [(high, 1, side, number) for side, number, (_, high) in there]
    open_now: tuple[dict[int, None], dict[int, None]] = ({}, {})
    met: list[tuple[int, int]] = []
    for _, closes, side, number in sorted(ends):
        if closes:
            del open_now[side][number]
            continue
        open_now[side][number] = None
        for other in open_now[1 - side]:
            pair = (number, other) if side == 0 else (other, number)
            if all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(boxes[0][pair[0]], boxes[1][pair[1]], strict=True)):
                met.append(pair)
    yield from ((ours[first], theirs[second]) for first, second in sorted(met))


def _cut_levels(pair: Pair) -> Pair:
    """Return a pair without the levels below the one at which it parts."""
    depth = pair.depth + (pair.loop is not None)
    first, second = (replace(access, levels=access.levels[:depth]) for access in pair.accesses)
    return replace(pair, first=first, second=second)


def _line_key(access: SiteAccess, dim: int, depth: int) -> tuple[object, ...] | None:
    """Return the line, factors and extents of a dimension; None if they depend on levels below `depth`, or a reshape couples dimensions."""
    region = region_of(access.view)
    if not region.is_box:
        return None
    line = region.dims[dim]
    extents = tuple(region.extents[number] for number, _ in line.terms)
    known = {var.id for level in access.levels[:depth] if isinstance(level, Loop) for var in bound_vars(level)}
    if any(isinstance(leaf, s.Var) and leaf.id not in known for node in (line.start, *extents) for leaf in s.leaves(node)):
        return None
    return (line.start, tuple(factor for _, factor in line.terms), extents)


def _box(access: SiteAccess) -> tuple[Interval, ...]:
    """Return an interval for each dimension that an access may reach, from constants alone."""
    region = region_of(access.view)
    ranges: dict[s.Scalar, Interval] = {}
    for level in access.levels:
        if isinstance(level, Loop):
            ranges[level.var] = interval(level.start, ranges.get)[0], interval(level.stop, ranges.get)[1] - 1
    box: list[Interval] = []
    for line in region.dims:
        low, high = interval(line.start, ranges.get)
        for number, factor in line.terms:
            most = interval(region.extents[number], ranges.get)[1] - 1
            low, high = (low, high + factor * most) if factor > 0 else (low + factor * most, high)
        box.append((low, high))
    return tuple(box)


def ordered_by_streams(pair: Pair, data: Data, lanes: Mapping[int, Scalar]) -> bool:
    """Tell whether two accesses are proved to be in one stream wherever they touch the same element."""
    statements = [access.statement for access in pair.accesses]
    streams = [lanes.get(statement.site) for statement in statements if isinstance(statement, Submit)]
    if len(streams) < 2 or streams[0] is None or streams[1] is None:
        return False
    question = Question(pair, data, pinned=False)
    question.guard()
    question.differ(streams[0], streams[1])
    return is_apart(question)
