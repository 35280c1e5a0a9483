"""Locate launches in a plan and decide which of them may share elements.

`statements` groups the launches of one task: a task is a run of adjacent launches with one source, or a block or scope whose launches have
one source. Data order its launches; a task waits if all its launches wait, and ends when all end.

`overlaps` and `ordered_by_data` find the order that the runtime surely infers from data: one launch writes what the other reads or writes,
for equal views or a whole tensor. `PlaceMap`, `meets_later` and `meets_in_other_turns` answer the opposite question: whether two launches
may touch the same elements, given the loops, fork branches and pipeline processes around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import takewhile
from math import prod
from typing import TypeAlias

from pto_wsp.errors import unreachable
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Choice, Consume, Do, Fresh, Loop, Pipeline, Receive, Sides, SilentItem, children, leaves, slots_set, walk
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.plan import Precondition
from pto_wsp.ir.waits import waited_for
from pto_wsp.npu.plan.model import (
    Descriptor,
    Launch,
    NpuBody,
    NpuChoice,
    NpuCommunication,
    NpuConsume,
    NpuItem,
    NpuLoop,
    NpuPipeline,
    NpuPlan,
    NpuSides,
    Passed,
    Scope,
    Window,
)
from pto_wsp.npu.tiles.touches import linear
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class TaskItems:
    """The items that one task consists of."""

    source: int
    items: tuple[NpuItem, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of the items, in program order."""
        return tuple(launch for item in self.items for launch in leaves(item))

    @property
    def count(self) -> int | None:
        """Return the number of runtime tasks, None if the number is known only at run time."""
        return total(n_launches(item) for item in self.items)


Statement: TypeAlias = (TaskItems | NpuLoop | NpuChoice | SilentItem[Precondition, int] | NpuSides | NpuBody | NpuPipeline
                        | NpuCommunication)


def statements(block: NpuBody) -> tuple[Statement, ...]:
    """Return the statements of a block in order."""
    found: list[Statement] = []
    for item in block.items:
        statement = _statement(item)
        last = found[-1] if found else None
        if isinstance(statement, TaskItems) and isinstance(last, TaskItems) and last.source == statement.source:
            found[-1] = TaskItems(last.source, (*last.items, item))
        else:
            found.append(statement)
    return tuple(found)


def _statement(item: NpuItem) -> Statement:
    match item:
        case Do(launch):
            return TaskItems(launch.source, (item,))
        case Scope(tensors=()):
            sources = {launch.source for launch in leaves(item)}
            return TaskItems(sources.pop(), (item,)) if len(sources) == 1 else item
        case Scope():
            return item
        case PlanSequence(items):
            parts = [part for part in map(_statement, items) if isinstance(part, TaskItems)]
            alone = len(parts) == len(items) and len({part.source for part in parts}) == 1
            return TaskItems(parts[0].source, items) if alone else item
        case Fresh():
            unreachable("a tensor made outside a scope")
        case _:
            return item


def surely_submits(statement: Statement) -> bool:
    """Return whether a statement submits at least one task in every run."""
    match statement:
        case TaskItems(items=items):
            return any(n_launches(item) not in (None, 0) for item in items)
        case Loop(body=body):
            return bool(trip_count(statement)) and surely_submits(body)
        case Choice():
            return all(map(surely_submits, statement.bodies))
        case Sides(sides):
            return any(map(surely_submits, sides))
        case PlanSequence():
            return any(map(surely_submits, statements(statement)))
        case _:
            return False


def trip_count(loop: NpuLoop) -> int | None:
    """Return how often a loop runs, None where that is known only at run time."""
    match loop.start, loop.stop, loop.step:
        case s.Const(start), s.Const(stop), s.Const(step):
            return len(range(int(start), int(stop), int(step)))
        case _:
            return None


def token_loop(drain: NpuConsume) -> NpuLoop:
    """Return a loop in place of a `Consume`: its trip count is unknown, and no variable of the tokens is linear in the iteration."""
    return Loop(s.Var("token", -1), s.Const(0), s.SlotValue(-1), s.Const(1), True, drain.body, Precondition())


def times(*counts: int | None) -> int | None:
    """Return the product of counts, None if a factor is unknown and no factor is 0."""
    if 0 in counts:
        return 0
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts, None if a count is unknown."""
    result = 0
    for count in counts:
        if count is None:
            return None
        result += count
    return result


def n_launches(item: NpuItem) -> int | None:
    """Return the number of tasks that an item submits, None if the number is known only at run time."""
    match item:
        case Do():
            return 1
        case Loop(body=body):
            return times(trip_count(item), n_launches(body))
        case Choice():
            counts = {n_launches(body) for body in item.bodies}
            return counts.pop() if len(counts) == 1 else None
        case Sides(parts) | PlanSequence(parts):
            return total(n_launches(part) for part in parts)
        case Pipeline() | Consume():
            return None
        case _:
            return 0


# -- overlap that the runtime surely sees ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contents:
    """The elements of a tensor, by tensor id, as read while tasks are created."""

    tensor: int


@dataclass(frozen=True, slots=True)
class Instance:
    """The tensor instance behind a slot; a scope that allocates the tensor again makes another instance."""

    slot: int


Moved: TypeAlias = frozenset[s.Var | s.SlotValue | Contents | Instance]      # values that may have changed between two points of the plan


def always_changing(plan: NpuPlan) -> Moved:
    """Return the scalars that may change between any two tasks: slots that are set, payloads of tokens, and elements that tasks write."""
    items = tuple(walk(plan.body))
    return frozenset((*map(s.SlotValue, slots_set(plan.body)),
                      *(var for item in items if isinstance(item, Receive | Consume) for var in item.vars),
                      *(Contents(slot.ref.id) for slot in plan.tensors if waited_for(slot))))


def changed_on_exit(item: NpuLoop | Scope) -> Moved:
    """Return the loop variables, or a scope's tensors, that differ after the end of an iteration or of the scope."""
    return frozenset(item.bound) if isinstance(item, Loop) else frozenset(map(Instance, item.tensors))


def overlaps(one: Descriptor | Passed, other: Descriptor | Passed, moved: Moved) -> bool:
    """Return whether two arguments surely share elements, unless one of them is empty. `moved`: values that may have changed in between."""
    match one, other:
        case Descriptor(slot, _, steps), Descriptor(other_slot, _, other_steps):
            if slot != other_slot or Instance(slot) in moved:
                return False
            return not steps or not other_steps or (steps == other_steps and not moved & set(depends_on(one)))
        case Passed(intermediate), Passed(other_intermediate):
            return intermediate == other_intermediate
        case _:
            return False


def ordered_by_data(first: TaskItems, then: TaskItems, moved: Moved) -> bool:
    """Return whether every launch of `then` surely waits for every launch of the earlier task `first`.

    `moved`: values that may differ between the two tasks.
    """
    early, late = tuple(_with_inner(first.items)), tuple(_with_inner(then.items))
    return all(len(late) == len(_waiting_launches(position, early, late, moved)) for position in range(len(early)))


def _waiting_launches(start: int, early: Sequence[tuple[Launch, Moved]], late: Sequence[tuple[Launch, Moved]], moved: Moved) -> set[int]:
    """Return the positions in `late` that wait for launch `start` of `early`, directly or through other launches."""
    reached = [early[start]]
    for launch in early[start + 1:]:
        if any(_edge(before, launch, frozenset()) for before in reached):
            reached.append(launch)
    successors: set[int] = set()
    for position, launch in enumerate(late):
        direct = any(_edge(before, launch, moved) for before in reached)
        if direct or any(_edge(late[before], launch, frozenset()) for before in successors):
            successors.add(position)
    return successors


def _edge(first: tuple[Launch, Moved], then: tuple[Launch, Moved], moved: Moved) -> bool:
    moved |= first[1] | then[1]
    return any(one.role.writes and overlaps(one, other, moved) for one in first[0].arguments for other in then[0].arguments)


def _with_inner(items: Sequence[NpuItem]) -> Iterator[tuple[Launch, Moved]]:
    """Yield the launches of a task with the variables of the loops around them inside the task."""
    for item in items:
        if isinstance(item, Do):
            yield item.leaf, frozenset()
        for launch, inner in _with_inner(children(item)):
            yield launch, inner | changed_on_exit(item) if isinstance(item, Loop) else inner


def depends_on(argument: Descriptor) -> Iterator[s.Var | s.SlotValue | Contents]:
    """Yield the variables, slots and tensor contents that an argument's window depends on."""
    for step in argument.steps:
        if isinstance(step, Window):
            for leaf in (leaf for node in (*step.offset, *step.shape) for leaf in s.leaves(node)):
                match leaf:
                    case s.Var() | s.SlotValue():
                        yield leaf
                    case s.Element(tensor):
                        yield Contents(tensor.id)
                    case _:
                        pass


def reads_only(argument: Descriptor | Passed, launch: Launch) -> bool:
    """Return whether a launch reads an argument and does not also write all of the same elements."""
    return argument.role is Role.IN and not any(other.role.writes and overlaps(argument, other, frozenset()) and _covers(other, argument)
                                                for other in launch.arguments)


def _covers(one: Descriptor | Passed, other: Descriptor | Passed) -> bool:
    return isinstance(one, Passed) or not one.steps or (isinstance(other, Descriptor) and one.steps == other.steps)


# -- places of launches ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TensorOf:
    """A tensor of the plan, by slot."""

    slot: int


@dataclass(frozen=True, slots=True)
class IntermediateOf:
    """An intermediate that the runtime allocates, by id."""

    intermediate: int


Resource: TypeAlias = TensorOf | IntermediateOf
Site: TypeAlias = tuple[int, int]              # source and part of a launch

_Way: TypeAlias = tuple[int, int]              # a fork, and the index of one of its bodies


@dataclass(frozen=True, slots=True)
class Position:
    """A launch with its position in program order, the loops around it, its fork branches, and its pipeline process.

    `process`: the pipeline, the process in the pipeline, and whether the process has a single replica.
    """

    launch: Launch
    position: int
    loops: tuple[NpuLoop, ...]
    ways: frozenset[_Way]
    process: tuple[int, int, bool] | None


@dataclass(slots=True)
class PlaceMap:
    """The places of a plan's launches. `depths`: loops around the scope that makes a tensor; `forks`: forks so far."""

    moving: Moved
    places: list[Position] = field(default_factory=list)
    depths: dict[Resource, int] = field(default_factory=dict)
    forks: int = 0
    process: tuple[int, int, bool] | None = None     # the process that `note` is in

    def note(self, item: NpuItem, loops: tuple[NpuLoop, ...], ways: frozenset[_Way]) -> None:
        """Record the places of an item's launches, in program order. `loops`: those around the item; `ways`: sides of the forks around."""
        match item:
            case Do(launch):
                self.places.append(Position(launch, len(self.places), loops, ways, self.process))
            case Consume():                    # as often as tokens come: none of its launches surely runs
                fork = self.forks = self.forks + 1
                self.note(item.body, (*loops, token_loop(item)), ways | {(fork, 0)})
            case Pipeline(stages):
                network = self.forks = self.forks + 1
                for number, stage in enumerate(stages):
                    self.process = (network, number, stage.replicas == 1)
                    self.note(stage.body, loops, ways)
                self.process = None
            case Choice():
                fork = self.forks = self.forks + 1
                for way, body in enumerate(item.bodies):
                    self.note(body, loops, ways | {(fork, way)})
            case Scope(items, intermediates, tensors):
                self.depths.update({IntermediateOf(made.id): len(loops) for made in intermediates})
                self.depths.update({TensorOf(slot): len(loops) for slot in tensors})
                for inner in items:
                    self.note(inner, loops, ways)
            case _:
                for inner in children(item):
                    self.note(inner, (*loops, item) if isinstance(item, Loop) else loops, ways)


def site_of(launch: Launch) -> Site:
    """Return the key of a launch: its source and part."""
    return launch.source, launch.part


def resource_of(argument: Descriptor | Passed) -> Resource:
    """Return the tensor or intermediate that an argument is a view of."""
    match argument:
        case Descriptor(slot):
            return TensorOf(slot)
        case Passed(intermediate):
            return IntermediateOf(intermediate)


def places_of(plan: NpuPlan) -> PlaceMap:
    """Return the places of all launches of a plan."""
    places = PlaceMap(always_changing(plan))
    places.note(plan.body, (), frozenset())
    return places


def common_loops(one: Position, other: Position) -> tuple[NpuLoop, ...]:
    """Return the loops around both of two launches, outermost first."""
    return tuple(mine for mine, _ in takewhile(lambda pair: pair[0] is pair[1], zip(one.loops, other.loops, strict=False)))


def meets_later(first: Position, early: Descriptor | Passed, then: Position, late: Descriptor | Passed, known: PlaceMap) -> bool:
    """Return whether an instance of `then` may follow an instance of `first` and touch the same elements.

    Both arguments view one tensor.
    """
    return meets_in_iterations(first, early, then, late, known) or (
        then.position > first.position and not _exclusive(first, then) and not _disjoint(early, late, known.moving))


def meets_in_iterations(first: Position, early: Descriptor | Passed, then: Position, late: Descriptor | Passed, known: PlaceMap) -> bool:
    """Return whether the two arguments may meet in different iterations of the common loops, or in concurrent processes."""
    if side_by_side(first, then):
        return True
    inside = common_loops(first, then)[known.depths.get(resource_of(early), 0):]      # an outer loop makes another tensor
    return not all(_apart(loop.var, early, late) for loop in inside)


def side_by_side(one: Position, other: Position) -> bool:
    """Return whether two launches belong to concurrent processes, or to replicas of one: their positions do not order them."""
    if one.process is None or other.process is None or one.process[0] != other.process[0]:
        return False
    return one.process != other.process or not one.process[2]


def _exclusive(one: Position, other: Position) -> bool:
    """Return whether two launches are in different branches of a fork: one iteration of the common loops runs at most one."""
    mine = dict(one.ways)
    return any(fork in mine and mine[fork] != way for fork, way in other.ways)


def _apart(var: s.Var, one: Descriptor | Passed, other: Descriptor | Passed) -> bool:
    """Return whether two arguments are disjoint for different values of `var`: along some dimension both are tile number `var`."""
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
    """Return k if an offset is k * var plus an optional constant; None otherwise."""
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
    """Return whether two arguments are disjoint within one iteration of the common loops: one ends before the other begins."""
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
