"""Pass: drop checks that have already held.

    X[i], Y[i] in one task; X[i], Z[i] in the next  →  the second task checks Z[i] alone

A check is decided by the values that it compares, and those stay the same within one iteration: what a statement has checked need
not be checked again by the statements after it in the same body, or in loops inside it. A check that compares an element which tasks
write is always made: tasks in between may have written another value.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.errors import InternalError
from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import (
    Branch,
    Check,
    Choice,
    Consume,
    Context,
    Item,
    Loop,
    Pipeline,
    Send,
    Sequence,
    SetSlot,
    Sides,
    Submit,
    TaskPlan,
)
from pto_wsp.plan.numbering import numbered_checks
from pto_wsp.plan.waits.elements import Reads
from pto_wsp.plan.walk import items_in
from pto_wsp.types.scalar import SlotValue


def drop_repeated_checks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Return the plan without checks that an earlier statement, sure to have run, has made."""
    del context
    return _without_repeats(plan)


def _without_repeats(plan: TaskPlan) -> TaskPlan:
    reads = Reads.of(plan)

    def fresh(checks: tuple[Check, ...], held: set[Check]) -> tuple[Check, ...]:
        new: list[Check] = []
        for check in checks:
            if _may_change(check, reads):
                new.append(check)
            elif _comparison(check) not in held:
                held.add(_comparison(check))
                new.append(check)
        return tuple(new)

    def forget(held: set[Check], slots: set[int]) -> None:
        """What was compared with these slots is to be compared again: they hold something else."""
        if slots:
            held -= {check for check in held if slots & _slots_in(check)}

    def sequence(body: Sequence, held: set[Check]) -> Sequence:
        return Sequence(tuple(walk(item, held) for item in body.items))

    def choice(branches: tuple[Branch, ...], otherwise: Sequence, held: set[Check]) -> Choice:
        """The first condition is always asked, a later one when those before it do not hold."""
        asked = held
        made: list[Branch] = []
        for branch in branches:
            checks = fresh(branch.checks, asked)
            made.append(replace(branch, checks=checks, body=sequence(branch.body, set(asked))))
            asked = set(asked)
        return Choice(tuple(made), sequence(otherwise, asked))

    def walk(item: Item, held: set[Check]) -> Item:
        match item:
            case Submit():
                return replace(item, checks=fresh(item.checks, held))
            case Loop():
                checks = fresh(item.checks, held)
                forget(held, _set_in(item.body))      # ahead of the body: the turn before may have set them
                inside = set(held)                    # the body may never run
                through = None if item.through is None else replace(item.through, checks=fresh(item.through.checks, inside))
                return replace(item, checks=checks, through=through, body=sequence(item.body, inside))
            case SetSlot(slot):
                checks = fresh(item.checks, held)
                forget(held, {slot})
                return replace(item, checks=checks)
            case Choice(branches, otherwise):
                decided = choice(branches, otherwise, held)
                forget(held, _set_in(item))
                return decided
            case Sides(sides):
                return Sides(tuple(sequence(side, held) for side in sides))
            case Sequence():
                return sequence(item, held)
            case Send():
                return replace(item, checks=fresh(item.checks, held))
            case Consume():
                forget(held, _set_in(item.body))
                return replace(item, body=sequence(item.body, set(held)))
            case Pipeline(processes):
                forget(held, _set_in(item))           # whichever process it is that sets them
                return replace(item, processes=tuple(replace(each, body=sequence(each.body, set(held))) for each in processes))
            case _:
                return item

    return replace(plan, body=sequence(plan.body, set()))


def verify_after_drop_repeated_checks(plan: TaskPlan) -> None:
    """No statement makes a comparison that an earlier one has made: there is nothing left to drop."""
    left = tuple(numbered.check for numbered in numbered_checks(_without_repeats(plan)))
    if len(left) != len(numbered_checks(plan)):
        repeated = next(numbered.check.subject for numbered, kept in zip(numbered_checks(plan), (*left, None), strict=False)
                        if numbered.check is not kept)
        raise InternalError("a check is repeated", repeated)


def _may_change(check: Check, reads: Reads) -> bool:
    return bool(reads.within(check.value, check.lower, check.upper))


def _slots_in(check: Check) -> set[int]:
    return {node.slot for node in nodes((check.value, check.lower, check.upper)) if isinstance(node, SlotValue)}


def _set_in(item: Item) -> set[int]:
    return {inner.slot for inner in items_in(item) if isinstance(inner, SetSlot)}


def _comparison(check: Check) -> Check:
    """The check without what only its message says."""
    return replace(check, subject="", param="")
