"""Write after read: which reads must be remembered, because a later write may fall on them and the runtime does not see it.

A pair of a read and a write needs nothing where no write can follow, where the turns of the loops around both work on different parts,
and where the data of the tasks in between already puts the write behind the read.
"""

from __future__ import annotations

from dataclasses import field
from itertools import takewhile
from typing import TypeAlias

from pto_wsp.plan.npu.edges.overlap import Moved, always_moving, left_behind, overlaps, reads_only
from pto_wsp.plan.npu.edges.statements import times, total, turns_of, turns_of_tokens
from pto_wsp.plan.npu.model import Descriptor, Drain, Fork, Launch, Network, NpuItem, NpuPlan, Passed, Repeat, Scope, Window
from pto_wsp.plan.npu.walk import inner_items
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class TensorOf:
    """A tensor of the plan, by its slot."""

    slot: int


@dataclass(frozen=True, slots=True)
class IntermediateOf:
    """A tensor that the runtime allocates, by its id."""

    intermediate: int


Resource: TypeAlias = TensorOf | IntermediateOf
Site: TypeAlias = tuple[int, int]              # source and part of a launch


@dataclass(slots=True)
class RememberedReads:
    """By launch: what it reads that must be remembered, and what it writes that must wait for remembered reads."""

    reads: dict[Site, tuple[Resource, ...]] = field(default_factory=dict)
    writes: dict[Site, tuple[Resource, ...]] = field(default_factory=dict)
    bounds: dict[Resource, int | None] = field(default_factory=dict)     # how many reads there can be

    def waits(self, launch: Launch) -> tuple[Resource, ...]:
        """Return whose readers a launch waits for."""
        return self.writes.get(site_of(launch), ())

    def remembered(self, launch: Launch) -> tuple[Resource, ...]:
        """Return what a launch is remembered as a reader of."""
        return self.reads.get(site_of(launch), ())


_Way: TypeAlias = tuple[int, int]              # a fork, and which of its bodies


@dataclass(frozen=True, slots=True)
class _Place:
    """A launch in the plan: where in program order, the loops around it, the ways of forks that it stands in, and its process.

    `process`: the network and which of its processes it is, and whether there is one such process alone.
    """

    launch: Launch
    position: int
    loops: tuple[Repeat, ...]
    ways: frozenset[_Way]
    process: tuple[int, int, bool] | None


@dataclass(slots=True)
class _Map:
    """The launches of a plan. `depths`: how many loops are around what makes a tensor; `forks` counts those seen."""

    moving: Moved
    places: list[_Place] = field(default_factory=list)
    depths: dict[Resource, int] = field(default_factory=dict)
    forks: int = 0
    process: tuple[int, int, bool] | None = None     # that is gone through

    def note(self, item: NpuItem, loops: tuple[Repeat, ...], ways: frozenset[_Way]) -> None:
        """Go through an item in program order."""
        match item:
            case Launch():
                self.places.append(_Place(item, len(self.places), loops, ways, self.process))
            case Drain():                    # as often as tokens come: none of its launches surely runs
                fork = self.forks = self.forks + 1
                self.note(item.body, (*loops, turns_of_tokens(item)), ways | {(fork, 0)})
            case Network(stages):
                network = self.forks = self.forks + 1
                for number, stage in enumerate(stages):
                    self.process = (network, number, stage.replicas == 1)
                    self.note(stage.body, loops, ways)
                self.process = None
            case Fork():
                fork = self.forks = self.forks + 1
                for way, body in enumerate(item.bodies):
                    self.note(body, loops, ways | {(fork, way)})
            case Scope(intermediates, _, tensors):
                self.depths.update({IntermediateOf(made.id): len(loops) for made in intermediates})
                self.depths.update({TensorOf(slot): len(loops) for slot in tensors})
                self.note(item.body, loops, ways)
            case _:
                for inner in inner_items(item):
                    self.note(inner, (*loops, item) if isinstance(item, Repeat) else loops, ways)


def site_of(launch: Launch) -> Site:
    """Return what tells a launch from the others of its plan."""
    return launch.source, launch.part


def resource_of(argument: Descriptor | Passed) -> Resource:
    """Return the tensor that an argument is, or is a part of."""
    match argument:
        case Descriptor(slot):
            return TensorOf(slot)
        case Passed(intermediate):
            return IntermediateOf(intermediate)


def remembered_reads(plan: NpuPlan) -> RememberedReads:
    """Return the reads of a plan that writes must be told to wait for."""
    known = _Map(always_moving(plan))
    known.note(plan.body, (), frozenset())
    found = RememberedReads()
    reads = [(place, argument) for place in known.places for argument in place.launch.arguments if reads_only(argument, place.launch)]
    writes = [(place, argument) for place in known.places for argument in place.launch.arguments if argument.role.writes]
    counts: dict[Resource, list[int | None]] = {}
    for reader, read in reads:
        resource = resource_of(read)
        needed = False
        for writer, written in writes:
            if resource_of(written) == resource and not _is_harmless(reader, read, writer, written, known):
                _add(found.writes, writer.launch, resource)
                needed = True
        if needed:
            _add(found.reads, reader.launch, resource)
            counts.setdefault(resource, []).append(times(*map(turns_of, reader.loops)))
    found.bounds.update({resource: total(parts) for resource, parts in counts.items()})
    return found


def _add(table: dict[Site, tuple[Resource, ...]], launch: Launch, resource: Resource) -> None:
    known = table.get(site_of(launch), ())
    table[site_of(launch)] = known if resource in known else (*known, resource)


def _is_harmless(reader: _Place, read: Descriptor | Passed, writer: _Place, written: Descriptor | Passed, known: _Map) -> bool:
    """Tell whether no turn of `writer` behind a turn of `reader` needs an edge to it."""
    if _side_by_side(reader, writer):
        return False
    common = tuple(one for one, _ in takewhile(lambda pair: pair[0] is pair[1], zip(reader.loops, writer.loops, strict=False)))
    inside = common[known.depths.get(resource_of(read), 0):]      # outside, it is another one
    if not all(_apart(loop.var, read, written) for loop in inside):
        return False
    return writer.position <= reader.position or _exclusive(reader, writer) or _is_ordered(reader, writer, known, common)


def _side_by_side(one: _Place, other: _Place) -> bool:
    """Tell whether two launches belong to processes side by side: which of them comes first, their places do not say."""
    if one.process is None or other.process is None or one.process[0] != other.process[0]:
        return False
    return one.process != other.process or not one.process[2]


def _exclusive(one: _Place, other: _Place) -> bool:
    """Tell whether two launches stand in different ways of a fork: in one turn of the loops around both only one of them is made."""
    mine = dict(one.ways)
    return any(fork in mine and mine[fork] != way for fork, way in other.ways)


def _apart(var: s.Var, one: Descriptor | Passed, other: Descriptor | Passed) -> bool:
    """Tell whether two arguments share nothing where `var` differs: along some dimension both are the tile that `var` names."""
    if isinstance(one, Passed) or isinstance(other, Passed) or not one.steps or not other.steps:
        return False
    mine, others = one.steps[0], other.steps[0]
    if not isinstance(mine, Window) or not isinstance(others, Window):
        return False
    for offset, shape, other_offset, other_shape in zip(mine.offset, mine.shape, others.offset, others.shape, strict=True):
        step = _step(offset, var)
        if offset == other_offset and step is not None and _fits(shape, step) and _fits(other_shape, step):
            return True
    return False


def _step(offset: s.Scalar, var: s.Var) -> int | None:
    """Return k where an offset is k * var, maybe with a constant added; None where it is anything else."""
    match offset:
        case s.Var():
            return 1 if offset == var else None
        case s.Binary(s.Op.MUL, s.Var() as inner, s.Const(value)) if inner == var:
            return abs(int(value))
        case s.Binary(s.Op.ADD | s.Op.SUB, inner, s.Const()):
            return _step(inner, var)
        case _:
            return None


def _fits(shape: s.Scalar, step: int) -> bool:
    match shape:
        case s.Const(value) | s.Binary(s.Op.MIN, _, s.Const(value)):
            return int(value) <= step
        case _:
            return False


def _is_ordered(reader: _Place, writer: _Place, known: _Map, common: tuple[Repeat, ...]) -> bool:
    """Tell whether data orders every turn of `writer` behind every turn of `reader`, in one turn of the loops around both."""
    reached = [reader]
    for place in known.places[reader.position + 1:writer.position + 1]:
        if place is not writer and (len(place.loops) != len(common) or not place.ways <= reader.ways | writer.ways):
            continue      # it may have no turn
        if place.process not in (reader.process, writer.process) or _side_by_side(place, reader) or _side_by_side(place, writer):
            continue      # it may come before the one, or behind the other
        if not all(mine is other for mine, other in zip(place.loops, common, strict=False)):
            continue
        if any(_data_edge(before, place, len(common), known.moving) for before in reached):
            if place is writer:
                return True
            reached.append(place)
    return False


def _data_edge(first: _Place, then: _Place, n_common: int, moving: Moved) -> bool:
    moved = moving.union(*(left_behind(loop) for place in (first, then) for loop in place.loops[n_common:]))
    return any(one.role.writes and overlaps(one, other, moved) and _is_something(one) and _is_something(other)
               for one in first.launch.arguments for other in then.launch.arguments)


def _is_something(argument: Descriptor | Passed) -> bool:
    """Tell whether an argument surely has elements: the runtime sees no edge where there are none."""
    return isinstance(argument, Passed) or all(
        isinstance(extent, s.DimOf) or (isinstance(extent, s.Const) and extent.value > 0)
        for step in argument.steps if isinstance(step, Window) for extent in step.shape)
