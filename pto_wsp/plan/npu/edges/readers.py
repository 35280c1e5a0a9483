"""Write after read: which reads must be remembered, because a later write may fall on them and the runtime does not see it.

A pair of a read and a write needs nothing where no write can follow, where the turns of the loops around both work on different parts,
and where the data of the tasks in between already puts the write behind the read.
"""

from __future__ import annotations

from dataclasses import field

from pto_wsp.plan.npu.edges.overlap import Moved, left_behind, overlaps, reads_only
from pto_wsp.plan.npu.edges.places import (
    Place,
    PlaceMap,
    Resource,
    Site,
    common_loops,
    meets_in_other_turns,
    meets_later,
    places_of,
    resource_of,
    side_by_side,
    site_of,
)
from pto_wsp.plan.npu.model import Descriptor, Launch, NpuPlan, Passed, Repeat, Window
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(slots=True)
class RememberedReads:
    """By launch: what it reads that must be remembered, and what it writes that must wait for remembered reads."""

    reads: dict[Site, tuple[Resource, ...]] = field(default_factory=dict)
    writes: dict[Site, tuple[Resource, ...]] = field(default_factory=dict)
    tensors: dict[Resource, None] = field(default_factory=dict)          # of the reads, in order

    def waits(self, launch: Launch) -> tuple[Resource, ...]:
        """Return whose readers a launch waits for."""
        return self.writes.get(site_of(launch), ())

    def remembered(self, launch: Launch) -> tuple[Resource, ...]:
        """Return what a launch is remembered as a reader of."""
        return self.reads.get(site_of(launch), ())


def remembered_reads(plan: NpuPlan) -> RememberedReads:
    """Return the reads of a plan that writes must be told to wait for."""
    known = places_of(plan)
    found = RememberedReads()
    reads = [(place, argument) for place in known.places for argument in place.launch.arguments if reads_only(argument, place.launch)]
    writes = [(place, argument) for place in known.places for argument in place.launch.arguments if argument.role.writes]
    for reader, read in reads:
        resource = resource_of(read)
        needed = False
        for writer, written in writes:
            if resource_of(written) == resource and not _is_harmless(reader, read, writer, written, known):
                _add(found.writes, writer.launch, resource)
                needed = True
        if needed:
            _add(found.reads, reader.launch, resource)
            found.tensors[resource] = None
    return found


def _add(table: dict[Site, tuple[Resource, ...]], launch: Launch, resource: Resource) -> None:
    known = table.get(site_of(launch), ())
    table[site_of(launch)] = known if resource in known else (*known, resource)


def _is_harmless(reader: Place, read: Descriptor | Passed, writer: Place, written: Descriptor | Passed, known: PlaceMap) -> bool:
    """Tell whether no turn of `writer` behind a turn of `reader` needs an edge to it."""
    if not meets_later(reader, read, writer, written, known):
        return True
    return not meets_in_other_turns(reader, read, writer, written, known) and _is_ordered(reader, writer, known,
                                                                                          common_loops(reader, writer))


def _is_ordered(reader: Place, writer: Place, known: PlaceMap, common: tuple[Repeat, ...]) -> bool:
    """Tell whether data orders every turn of `writer` behind every turn of `reader`, in one turn of the loops around both."""
    reached = [reader]
    for place in known.places[reader.position + 1:writer.position + 1]:
        if place is not writer and (len(place.loops) != len(common) or not place.ways <= reader.ways | writer.ways):
            continue      # it may have no turn
        if place.process not in (reader.process, writer.process) or side_by_side(place, reader) or side_by_side(place, writer):
            continue      # it may come before the one, or behind the other
        if not all(mine is other for mine, other in zip(place.loops, common, strict=False)):
            continue
        if any(_data_edge(before, place, len(common), known.moving) for before in reached):
            if place is writer:
                return True
            reached.append(place)
    return False


def _data_edge(first: Place, then: Place, n_common: int, moving: Moved) -> bool:
    moved = moving.union(*(left_behind(loop) for place in (first, then) for loop in place.loops[n_common:]))
    return any(one.role.writes and overlaps(one, other, moved) and _is_something(one) and _is_something(other)
               for one in first.launch.arguments for other in then.launch.arguments)


def _is_something(argument: Descriptor | Passed) -> bool:
    """Tell whether an argument surely has elements: the runtime sees no edge where there are none."""
    return isinstance(argument, Passed) or all(
        isinstance(extent, s.DimOf) or (isinstance(extent, s.Const) and extent.value > 0)
        for step in argument.steps if isinstance(step, Window) for extent in step.shape)
