"""Divide a function in tiled form into calls of kernels, and say where each array lies: plan_scratch.

Items of one group that stand side by side are one call of a kernel, a `Run`. State that one run alone uses, and that is made next to it or
in it, is a buffer there; a value that its run alone uses is a value of the kernel; everything else lies in memory: a parameter, a result,
or a tensor made where the state is made, so that each iteration around has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import elements_in
from pto_wsp.ir.tensor_function import Apply, Array, Body, Item, Make, Put, Show, TensorFunction
from pto_wsp.passes.tensor.effects import group_name, made_by
from pto_wsp.values import dataclass


class ArrayHome(Enum):
    """The place of an array's elements while kernels run."""

    MEMORY = "memory"
    BUFFER = "a buffer of its kernel"
    VALUE = "a value of its kernel"


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The items that one call of a kernel computes, with the state that the items make. `group`: name of the group, "" for none."""

    group: str
    items: tuple[Item, ...]


Segment: TypeAlias = Run | Item


@dataclass(frozen=True, slots=True, eq=False)
class Homes:
    """The function in segments, body by body, and the home of each array by its id."""

    segments: dict[int, tuple[Segment, ...]]
    homes: dict[int, ArrayHome]

    def of(self, array: Array) -> ArrayHome:
        """Return the place of an array's elements."""
        return self.homes.get(array.id, ArrayHome.MEMORY)

    def inside(self, body: Body) -> tuple[Segment, ...]:
        """Return a body of tasks in segments."""
        return self.segments[id(body)]

    def adopt(self, body: Body) -> None:
        """Divide a body of tasks that a pass has rewritten while it prints; arrays keep their homes."""
        _divide(body, self.segments, frozenset())      # no loop makes a result

    def leaving(self, run: Run) -> list[Array]:
        """Return the values of a run that others read: no statement stores them, so the run does."""
        return [array for item in run.items for leaf in flow.leaves(item) if isinstance(leaf, Apply)
                for array in leaf.results if self.of(array) is ArrayHome.MEMORY]


def plan_scratch(function: TensorFunction) -> Homes:
    """Return the segments of a function in tiled form, and the homes of its arrays."""
    segments: dict[int, tuple[Segment, ...]] = {}
    results = frozenset(view.array.id for view in function.results)
    _divide(function.body, segments, results)
    users: dict[int, set[int]] = {}
    homes: dict[int, ArrayHome] = {}
    defined: dict[int, int] = {}          # by id of a value: its run
    for parts in segments.values():
        for part in parts:
            if isinstance(part, Run):
                for used in _used(part.items):
                    users.setdefault(used, set()).add(id(part))
                for leaf in (leaf for item in part.items for leaf in flow.leaves(item)):
                    if isinstance(leaf, Make):
                        homes[leaf.array.id] = ArrayHome.BUFFER      # a run makes what it alone uses, see _with_state
                    else:
                        defined.update((array.id, id(part)) for array in leaf.defines)
            else:
                for used in _used_around(part):
                    users.setdefault(used, set()).add(0)
    for view in function.results:
        users.setdefault(view.array.id, set()).add(0)
    for one, run in defined.items():
        homes[one] = ArrayHome.VALUE if users.get(one, set()) <= {run} else ArrayHome.MEMORY
    return Homes(segments, homes)


def _divide(body: Body, segments: dict[int, tuple[Segment, ...]], results: frozenset[int]) -> None:
    parts: list[Segment] = []
    run: list[Item] = []
    group = ""
    makes: list[Item] = []

    def close() -> None:
        nonlocal run
        if run:
            parts.append(Run(group, tuple(run)))
        run = []

    for item in body.items:
        if made_by(item) is not None:
            makes.append(item)
        elif isinstance(item, flow.Do) or group_name(item):
            name = group_name(item)
            if run and name != group:
                close()
            parts.extend(makes)           # in front of the run, if it has begun: nothing in it uses the state yet
            run.append(item)
            group, makes = name, []
        else:
            close()
            parts.extend(makes)
            makes = []
            if isinstance(item, flow.Sequence):
                _divide(item, segments, results)
            else:
                for inner in flow.children(item):
                    assert isinstance(inner, flow.Sequence)
                    _divide(inner, segments, results)
            parts.append(item)
    close()
    parts.extend(makes)
    segments[id(body)] = _with_state(tuple(parts), results)


def _with_state(parts: tuple[Segment, ...], results: frozenset[int]) -> tuple[Segment, ...]:
    """Move each `Make` of a body into the run that alone uses its state; a result of the function is memory, whoever writes it."""
    users: dict[int, list[int]] = {}
    for place, part in enumerate(parts):
        found = set(_used(part.items)) if isinstance(part, Run) else set(_all_used(part))
        for one in found:
            users.setdefault(one, []).append(place)
    moved: dict[int, list[Item]] = {}
    kept: list[Segment | None] = list(parts)
    for place, part in enumerate(parts):
        if isinstance(part, Run):
            continue
        array = made_by(part)
        if array is None or array.id in results:
            continue
        places = users.get(array.id, [])
        if len(places) == 1 and isinstance(parts[places[0]], Run):
            moved.setdefault(places[0], []).append(part)
            kept[place] = None
    out: list[Segment] = []
    for place, segment in enumerate(kept):
        if isinstance(segment, Run) and place in moved:
            segment = Run(segment.group, (*moved[place], *segment.items))
        if segment is not None:
            out.append(segment)
    return tuple(out)


def _used(items: tuple[Item, ...]) -> Iterator[int]:
    """Yield the ids of arrays that items read or write, whole or by element; a state that items only make is not used."""
    for item in items:
        if made_by(item) is None:
            yield from _all_used(item)


def _all_used(item: Item) -> Iterator[int]:
    for inner in flow.walk(item):
        yield from elements_in(one for evaluation in flow.evaluations(inner) for one in evaluation.scalars)
        if isinstance(inner, flow.Do):
            leaf = inner.leaf
            if isinstance(leaf, Apply | Put | Show):
                yield from (view.array.id for view in leaf.views)
            yield from leaf.elements


def _used_around(item: Item) -> Iterator[int]:
    """Yield the ids of arrays of which a loop or a choice of tasks, or the extents of state, read elements."""
    yield from elements_in(one for evaluation in flow.evaluations(item) for one in evaluation.scalars)
    if isinstance(item, flow.Do):
        yield from item.leaf.elements
