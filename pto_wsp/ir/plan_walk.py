"""Walk the items of a plan, rebuild them by a function, and number the plan's checks.

The number of a check identifies it in a failed run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pto_wsp.ir.plan import (
    AwaitEvent,
    Check,
    Choice,
    Consume,
    Fresh,
    Item,
    Loop,
    Pipeline,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    SetSlot,
    Sides,
    Submit,
    TaskPlan,
    inner_vars,
)
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import SlotValue, Var
from pto_wsp.values import dataclass


def inner_items(item: Item) -> tuple[Item, ...]:
    """Return the items directly inside an item, in program order."""
    match item:
        case Loop() | Consume():
            return (item.body,)
        case Choice(branches, otherwise):
            return (*(branch.body for branch in branches), otherwise)
        case Sides(parts) | Sequence(parts):
            return parts
        case Pipeline(processes):
            return tuple(process.body for process in processes)
        case Submit() | SetSlot() | Fresh() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return ()


def items_in(item: Item) -> Iterator[Item]:
    """Yield an item and every item inside it, in program order, parents first."""
    yield item
    for inner in inner_items(item):
        yield from items_in(inner)


def items_of(plan: TaskPlan) -> Iterator[Item]:
    """Yield every item of a plan in program order, parents first."""
    return items_in(plan.body)


def slots_used(plan: TaskPlan) -> tuple[int, ...]:
    """Return the orchestrator's slots that a plan sets or reads, ascending."""
    return tuple(sorted({node.slot for node in nodes(plan.body) if isinstance(node, SetSlot | SlotValue)}))


def submits(plan: TaskPlan) -> tuple[Submit, ...]:
    """Return the plan's task sites in program order."""
    return tuple(item for item in items_of(plan) if isinstance(item, Submit))


def map_items(plan: TaskPlan, change: Callable[[Item], Item]) -> TaskPlan:
    """Return the plan with `change` applied to every item except sequences, parents first, in program order."""
    return replace(plan, body=map_sequence(plan.body, change))


def map_sequence(body: Sequence, change: Callable[[Item], Item]) -> Sequence:
    """Return a sequence with `change` applied to every item inside except sequences, parents first, in program order."""
    def walk(item: Item) -> Item:
        if isinstance(item, Sequence):
            return sequence(item)
        changed = change(item)
        match changed:
            case Loop() | Consume():
                return replace(changed, body=sequence(changed.body))
            case Choice(branches, otherwise):
                return Choice(tuple(replace(branch, body=sequence(branch.body)) for branch in branches), sequence(otherwise))
            case Sides(sides):
                return Sides(tuple(sequence(side) for side in sides))
            case Pipeline(processes):
                return replace(changed, processes=tuple(replace(process, body=sequence(process.body)) for process in processes))
            case _:
                return changed

    def sequence(inner: Sequence) -> Sequence:
        return Sequence(tuple(walk(item) for item in inner.items))

    return sequence(body)


def map_submits(plan: TaskPlan, task: Callable[[Submit], Submit], loop: Callable[[Loop], Loop] = lambda loop: loop) -> TaskPlan:
    """Return the plan with `task` applied to every task site and `loop` to every loop, in program order."""
    def change(item: Item) -> Item:
        match item:
            case Submit():
                return task(item)
            case Loop():
                return loop(item)
            case _:
                return item

    return map_items(plan, change)


@dataclass(frozen=True, slots=True)
class NumberedCheck:
    """A check with its number in the orchestrator, and the variables in scope."""

    number: int
    check: Check
    loops: tuple[Var, ...]


def numbered_checks(plan: TaskPlan) -> tuple[NumberedCheck, ...]:
    """Return the plan's checks in the order of the orchestrator's numbers: textual order."""
    checks_so_far: list[NumberedCheck] = []

    def note(checks: tuple[Check, ...], loops: tuple[Var, ...]) -> None:
        for check in checks:
            checks_so_far.append(NumberedCheck(len(checks_so_far), check, loops))

    def walk(item: Item, loops: tuple[Var, ...]) -> None:
        match item:
            case Submit() | SetSlot() | Send():
                note(item.checks, loops)
            case Loop(var=var, through=through):
                note(item.checks, loops)
                if through is not None:
                    note(through.checks, (*loops, var))
                walk(item.body, (*loops, *inner_vars(item)))
            case Choice(branches, otherwise):
                for branch in branches:
                    note(branch.checks, loops)
                    walk(branch.body, loops)
                walk(otherwise, loops)
            case Sequence(items):
                for inner in items:
                    walk(inner, loops)
                    if isinstance(inner, Receive):
                        loops = (*loops, *inner.vars)
            case Sides() | Consume() | Pipeline():
                for inner in inner_items(item):
                    walk(inner, (*loops, *inner_vars(item)))
            case Fresh() | Receive() | RecordEvent() | AwaitEvent():
                pass

    walk(plan.body, ())
    return tuple(checks_so_far)
