"""Which launches the runtime surely orders by itself: one writes what the other reads or writes, wherever that is not empty.

Only what stands there is looked at: equal views of one tensor overlap, and a whole tensor overlaps every view of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pto_wsp.expr.kernel import Role
from pto_wsp.plan.model import Receive, SetSlot
from pto_wsp.plan.npu.edges.statements import Task
from pto_wsp.plan.npu.model import Descriptor, Drain, Launch, NpuItem, NpuPlan, Passed, Repeat, Scope, Window
from pto_wsp.plan.npu.walk import inner_items, items_of
from pto_wsp.plan.waits.elements import waited_for
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Contents:
    """The elements of a tensor, by its id, as they are read while tasks are made."""

    tensor: int


@dataclass(frozen=True, slots=True)
class Instance:
    """Which tensor it is that a slot stands for: where it is made anew, it is another one."""

    slot: int


Moved: TypeAlias = frozenset[s.Var | s.SlotValue | Contents | Instance]      # what may be something else by now


def always_moving(plan: NpuPlan) -> Moved:
    """Return what may change between any two tasks: slots that are set, what tokens carry, and elements that are read and that tasks
    write."""
    items = tuple(items_of(plan.body))
    return frozenset((*(s.SlotValue(item.slot) for item in items if isinstance(item, SetSlot)),
                      *(var for item in items if isinstance(item, Receive | Drain) for var in item.vars),
                      *(Contents(slot.ref.id) for slot in plan.tensors if waited_for(slot))))


def left_behind(item: Repeat | Scope) -> Moved:
    """Return what is something else outside of a loop's turn, or of a scope."""
    return frozenset(item.bound) if isinstance(item, Repeat) else frozenset(map(Instance, item.tensors))


def overlaps(one: Descriptor | Passed, other: Descriptor | Passed, moved: Moved) -> bool:
    """Tell whether two arguments surely share elements, if there are any. `moved`: what may have changed in between."""
    match one, other:
        case Descriptor(slot, _, steps), Descriptor(other_slot, _, other_steps):
            if slot != other_slot or Instance(slot) in moved:
                return False
            return not steps or not other_steps or (steps == other_steps and not moved & set(depends_on(one)))
        case Passed(intermediate), Passed(other_intermediate):
            return intermediate == other_intermediate
        case _:
            return False


def ordered_by_data(first: Task, then: Task, moved: Moved) -> bool:
    """Tell whether every launch of `then` surely waits for every launch of `first`, which stands before it.

    `moved`: what may be something else in `then` than it was in `first`.
    """
    early, late = tuple(_with_inner(first.items)), tuple(_with_inner(then.items))
    return all(len(late) == len(_behind(position, early, late, moved)) for position in range(len(early)))


def _behind(start: int, early: Sequence[tuple[Launch, Moved]], late: Sequence[tuple[Launch, Moved]], moved: Moved) -> set[int]:
    """Return which of `late` are behind launch `start` of `early`, by way of others too."""
    reached = [early[start]]
    for launch in early[start + 1:]:
        if any(_edge(before, launch, frozenset()) for before in reached):
            reached.append(launch)
    found: set[int] = set()
    for position, launch in enumerate(late):
        direct = any(_edge(before, launch, moved) for before in reached)
        if direct or any(_edge(late[before], launch, frozenset()) for before in found):
            found.add(position)
    return found


def _edge(first: tuple[Launch, Moved], then: tuple[Launch, Moved], moved: Moved) -> bool:
    moved |= first[1] | then[1]
    return any(one.role.writes and overlaps(one, other, moved) for one in first[0].arguments for other in then[0].arguments)


def _with_inner(items: Sequence[NpuItem]) -> Iterator[tuple[Launch, Moved]]:
    """Yield the launches of a task with the variables of the loops around them inside the task."""
    for item in items:
        if isinstance(item, Launch):
            yield item, frozenset()
        for launch, inner in _with_inner(inner_items(item)):
            yield launch, inner | left_behind(item) if isinstance(item, Repeat) else inner


def depends_on(argument: Descriptor) -> Iterator[s.Var | s.SlotValue | Contents]:
    """Yield what an argument's place in its tensor depends on."""
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
    """Tell whether a launch reads an argument and does not write the same elements as well."""
    return argument.role is Role.IN and not any(other.role.writes and overlaps(argument, other, frozenset()) and _covers(other, argument)
                                                for other in launch.arguments)


def _covers(one: Descriptor | Passed, other: Descriptor | Passed) -> bool:
    return isinstance(one, Passed) or not one.steps or (isinstance(other, Descriptor) and one.steps == other.steps)
