"""Rebuild a plan with every task site, or every loop, changed by a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pto_wsp.plan.model import Item, Loop, Sequence, Sides, Submit, TaskPlan


def map_submits(plan: TaskPlan, task: Callable[[Submit], Submit], loop: Callable[[Loop], Loop] = lambda loop: loop) -> TaskPlan:
    """Return the plan with `task` applied to every task site and `loop` to every loop, in program order."""
    def walk(item: Item) -> Item:
        match item:
            case Submit():
                return task(item)
            case Loop():
                changed = loop(item)
                return replace(changed, body=sequence(changed.body))
            case Sides(sides):
                return Sides(tuple(sequence(side) for side in sides))
            case Sequence():
                return sequence(item)

    def sequence(body: Sequence) -> Sequence:
        return Sequence(tuple(walk(item) for item in body.items))

    return replace(plan, body=sequence(plan.body))
