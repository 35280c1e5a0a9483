"""Rebuild a plan with every task site, every loop, or every item changed by a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pto_wsp.plan.model import Choice, Consume, Item, Loop, Pipeline, Sequence, Sides, Submit, TaskPlan


def map_items(plan: TaskPlan, change: Callable[[Item], Item]) -> TaskPlan:
    """Return the plan with `change` applied to every item that is no sequence, parents first, in program order."""
    return replace(plan, body=map_sequence(plan.body, change))


def map_sequence(body: Sequence, change: Callable[[Item], Item]) -> Sequence:
    """Return a sequence with `change` applied to every item in it that is no sequence, parents first, in program order."""
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
