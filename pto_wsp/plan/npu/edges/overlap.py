"""Which launches the runtime surely orders by itself: one writes what the other reads or writes, wherever that is not empty.

Only what stands there is looked at: equal views of one tensor overlap, and a whole tensor overlaps every view of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.expr.kernel import Role
from pto_wsp.plan.npu.edges.statements import Task
from pto_wsp.plan.npu.model import Descriptor, Launch, NpuItem, Passed, Repeat, Scope, Unordered, Window
from pto_wsp.types import scalar as s


def overlaps(one: Descriptor | Passed, other: Descriptor | Passed, moved: frozenset[s.Var]) -> bool:
    """Tell whether two arguments surely share elements, if there are any. `moved`: variables that may have changed in between."""
    match one, other:
        case Descriptor(slot, _, steps), Descriptor(other_slot, _, other_steps):
            if slot != other_slot:
                return False
            return not steps or not other_steps or (steps == other_steps and not moved & set(_variables(one)))
        case Passed(intermediate), Passed(other_intermediate):
            return intermediate == other_intermediate
        case _:
            return False


def ordered_by_data(first: Task, then: Task, moved: frozenset[s.Var]) -> bool:
    """Tell whether every launch of `then` surely waits for every launch of `first`, which stands before it.

    `moved`: variables that may have another value in `then` than they had in `first`.
    """
    early, late = tuple(_with_inner(first.items)), tuple(_with_inner(then.items))
    return all(len(late) == len(_behind(position, early, late, moved)) for position in range(len(early)))


def _behind(start: int, early: Sequence[tuple[Launch, frozenset[s.Var]]], late: Sequence[tuple[Launch, frozenset[s.Var]]],
            moved: frozenset[s.Var]) -> set[int]:
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


def _edge(first: tuple[Launch, frozenset[s.Var]], then: tuple[Launch, frozenset[s.Var]], moved: frozenset[s.Var]) -> bool:
    moved |= first[1] | then[1]
    return any(one.role.writes and overlaps(one, other, moved) for one in first[0].arguments for other in then[0].arguments)


def _with_inner(items: Sequence[NpuItem]) -> Iterator[tuple[Launch, frozenset[s.Var]]]:
    """Yield the launches of a task with the variables of the loops around them inside the task."""
    for item in items:
        match item:
            case Launch():
                yield item, frozenset()
            case Repeat(var=var, body=body):
                for launch, inner in _with_inner(body.items):
                    yield launch, inner | {var}
            case Scope(body=body):
                yield from _with_inner(body.items)
            case Unordered(parts):
                yield from _with_inner(parts)
            case _:
                yield from _with_inner(item.items)


def _variables(argument: Descriptor) -> Iterator[s.Var]:
    for step in argument.steps:
        if isinstance(step, Window):
            for node in (*step.offset, *step.shape):
                yield from (leaf for leaf in s.leaves(node) if isinstance(leaf, s.Var))


def reads_only(argument: Descriptor | Passed, launch: Launch) -> bool:
    """Tell whether a launch reads an argument and does not write the same elements as well."""
    return argument.role is Role.IN and not any(other.role.writes and overlaps(argument, other, frozenset()) and _covers(other, argument)
                                                for other in launch.arguments)


def _covers(one: Descriptor | Passed, other: Descriptor | Passed) -> bool:
    return isinstance(one, Passed) or not one.steps or (isinstance(other, Descriptor) and one.steps == other.steps)
