"""The task sites, slots and checks of a plan, and a plan with every task site changed by a function.

The number of a check identifies it in a failed run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from dataclasses import replace

from pto_wsp.ir.flow import (
    Choice,
    Do,
    Fresh,
    Loop,
    Receive,
    Sequence,
    bound_vars,
    children,
    evaluations,
    leaves,
    rewrite,
    rewrite_leaves,
    slots_set,
    walk,
)
from pto_wsp.ir.plan import Check, Item, Precondition, Submit, TaskPlan
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Const, Scalar, SlotValue, Var, mul
from pto_wsp.values import dataclass


def slots_used(plan: TaskPlan) -> tuple[int, ...]:
    """Return the orchestrator's slots that a plan sets or reads, ascending."""
    return tuple(sorted({*slots_set(plan.body), *(node.slot for node in nodes(plan.body) if isinstance(node, SlotValue))}))


def sizes_made(plan: TaskPlan) -> Mapping[int, tuple[Scalar, ...]]:
    """Return the extents of the tensors that bodies allocate, by the tensor's id."""
    refs = {number: slot.ref for number, slot in enumerate(plan.tensors) if slot.fresh}
    sizes: dict[int, tuple[Scalar, ...]] = {ref.id: tuple(map(Const, ref.shape)) for ref in refs.values()}
    return sizes | {refs[item.tensor].id: item.sizes for item in walk(plan.body) if isinstance(item, Fresh) and item.sizes}


def dense_stride(sizes: Items[Scalar], dim: int) -> Scalar:
    """Return the stride of a dimension of a contiguous tensor, in elements."""
    stride: Scalar = Const(1)
    for size in sizes[dim + 1:]:
        stride = mul(stride, Const(max(1, int(size.value))) if isinstance(size, Const) else size)
    return stride


def notes_of(item: Item) -> tuple[Precondition, ...]:
    """Return what comes before an item's own evaluations, in their order."""
    return tuple(each.node.note for each in evaluations(item))


def submits(plan: TaskPlan) -> tuple[Submit, ...]:
    """Return the plan's task sites in program order."""
    return tuple(leaves(plan.body))


def map_items(plan: TaskPlan, change: Callable[[Item], Item]) -> TaskPlan:
    """Return the plan with `change` applied to every item that is no sequence, parents first, in program order."""
    return replace(plan, body=rewrite(plan.body, change))


def map_submits(plan: TaskPlan, change: Callable[[Submit], Submit]) -> TaskPlan:
    """Return the plan with `change` applied to every task site, in program order."""
    return replace(plan, body=rewrite_leaves(plan.body, change))


@dataclass(frozen=True, slots=True)
class NumberedCheck:
    """A check with its number in the orchestrator, and the variables in scope."""

    number: int
    check: Check
    loops: tuple[Var, ...]


def numbered_checks(plan: TaskPlan) -> tuple[NumberedCheck, ...]:
    """Return the plan's checks in the order in which the orchestrator numbers them: that of the text."""
    found: list[NumberedCheck] = []

    def number(note: Precondition, loops: tuple[Var, ...]) -> None:
        for check in note.checks:
            found.append(NumberedCheck(len(found), check, loops))

    def visit(item: Item, loops: tuple[Var, ...]) -> None:
        match item:
            case Do(task):
                number(task.note, loops)
            case Loop(var=var, note=note, through=through):
                number(note, loops)
                if through is not None:
                    number(through.note, (*loops, var))
                visit(item.body, (*loops, *item.bound))
            case Choice(branches, otherwise):
                for branch in branches:
                    number(branch.note, loops)
                    visit(branch.body, loops)
                visit(otherwise, loops)
            case Sequence(items):
                for inner in items:
                    visit(inner, loops)
                    if isinstance(inner, Receive):
                        loops = (*loops, *inner.vars)
            case _:
                for note in notes_of(item):
                    number(note, loops)
                for inner in children(item):
                    visit(inner, (*loops, *bound_vars(item)))

    visit(plan.body, ())
    return tuple(found)
