"""Where the launches of a plan stand, and which of their turns may share elements.

What is told or looked up for a pair of launches depends on the loops, ways and processes around both, and on whether the parts that they
use are apart: in different turns of a loop, or in the same one.
"""

from __future__ import annotations

from dataclasses import field
from itertools import takewhile
from typing import TypeAlias

from pto_wsp.plan.npu.edges.overlap import Moved, always_moving, depends_on
from pto_wsp.plan.npu.edges.statements import turns_of_tokens
from pto_wsp.plan.npu.model import Descriptor, Drain, Fork, Launch, Network, NpuItem, NpuPlan, Passed, Repeat, Scope, Window
from pto_wsp.plan.npu.tiles.touches import linear
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

_Way: TypeAlias = tuple[int, int]              # a fork, and which of its bodies


@dataclass(frozen=True, slots=True)
class Place:
    """A launch in the plan: where in program order, the loops around it, the ways of forks that it stands in, and its process.

    `process`: the network and which of its processes it is, and whether there is one such process alone.
    """

    launch: Launch
    position: int
    loops: tuple[Repeat, ...]
    ways: frozenset[_Way]
    process: tuple[int, int, bool] | None


@dataclass(slots=True)
class PlaceMap:
    """The launches of a plan. `depths`: how many loops are around what makes a tensor; `forks` counts those seen."""

    moving: Moved
    places: list[Place] = field(default_factory=list)
    depths: dict[Resource, int] = field(default_factory=dict)
    forks: int = 0
    process: tuple[int, int, bool] | None = None     # that is gone through

    def note(self, item: NpuItem, loops: tuple[Repeat, ...], ways: frozenset[_Way]) -> None:
        """Go through an item in program order."""
        match item:
            case Launch():
                self.places.append(Place(item, len(self.places), loops, ways, self.process))
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


def places_of(plan: NpuPlan) -> PlaceMap:
    """Return the launches of a plan with where they stand."""
    found = PlaceMap(always_moving(plan))
    found.note(plan.body, (), frozenset())
    return found


def common_loops(one: Place, other: Place) -> tuple[Repeat, ...]:
    """Return the loops around both of two launches, outermost first."""
    return tuple(mine for mine, _ in takewhile(lambda pair: pair[0] is pair[1], zip(one.loops, other.loops, strict=False)))


def meets_later(first: Place, early: Descriptor | Passed, then: Place, late: Descriptor | Passed, known: PlaceMap) -> bool:
    """Tell whether a turn of `then` may stand behind a turn of `first` and use elements that it used. Both arguments are of one tensor."""
    return meets_in_other_turns(first, early, then, late, known) or (
        then.position > first.position and not _exclusive(first, then) and not _disjoint(early, late, known.moving))


def meets_in_other_turns(first: Place, early: Descriptor | Passed, then: Place, late: Descriptor | Passed, known: PlaceMap) -> bool:
    """Tell whether that may be so in different turns of the loops around both, or in processes side by side."""
    if side_by_side(first, then):
        return True
    inside = common_loops(first, then)[known.depths.get(resource_of(early), 0):]      # outside, it is another tensor
    return not all(_apart(loop.var, early, late) for loop in inside)


def side_by_side(one: Place, other: Place) -> bool:
    """Tell whether two launches belong to processes side by side: which of them comes first, their places do not say."""
    if one.process is None or other.process is None or one.process[0] != other.process[0]:
        return False
    return one.process != other.process or not one.process[2]


def _exclusive(one: Place, other: Place) -> bool:
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


def _disjoint(one: Descriptor | Passed, other: Descriptor | Passed, moving: Moved) -> bool:
    """Tell whether two arguments share nothing in one turn of the loops around both: along some dimension one ends before the other."""
    if isinstance(one, Passed) or isinstance(other, Passed) or not one.steps or not other.steps:
        return False
    mine, others = one.steps[0], other.steps[0]
    if not isinstance(mine, Window) or not isinstance(others, Window) or moving & {*depends_on(one), *depends_on(other)}:
        return False
    for offset, shape, other_offset, other_shape in zip(mine.offset, mine.shape, others.offset, others.shape, strict=True):
        by = linear(s.sub(other_offset, offset), {})
        if by is not None and not by.terms and (_fits(shape, by.number) or _fits(other_shape, -by.number)):
            return True
    return False
