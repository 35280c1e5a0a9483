"""The numbers of a plan's checks: a run that fails says which one it was."""

from __future__ import annotations

from pto_wsp.plan.model import (
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
from pto_wsp.plan.walk import inner_items
from pto_wsp.types.scalar import Var
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class NumberedCheck:
    """A check with its place in the orchestrator's numbering and the variables that are known there."""

    number: int
    check: Check
    loops: tuple[Var, ...]


def numbered_checks(plan: TaskPlan) -> tuple[NumberedCheck, ...]:
    """Return the plan's checks in the order in which the orchestrator numbers them: that of the text."""
    found: list[NumberedCheck] = []

    def note(checks: tuple[Check, ...], loops: tuple[Var, ...]) -> None:
        for check in checks:
            found.append(NumberedCheck(len(found), check, loops))

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
    return tuple(found)
