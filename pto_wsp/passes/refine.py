"""Refine a plan: drop repeated checks, find outputs that may be bound short, and outputs that bypass the caches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from pto_wsp.errors import InternalError
from pto_wsp.ir.flow import Choice, Consume, Do, Loop, Pipeline, Sequence, Sides, slots_set, with_notes
from pto_wsp.ir.kernel import TileParam
from pto_wsp.ir.plan import Body, Check, Item, PlanBranch, PlanChoice, Precondition, TaskPlan, TensorSlot
from pto_wsp.ir.plan_walk import numbered_checks, submits
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Const, SlotValue
from pto_wsp.ir.view import declared
from pto_wsp.ir.waits import Reads
from pto_wsp.passes.context import Context


# -- ragged outputs ----------------------------------------------------------------------------------------------------
def find_ragged_outputs(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set `ragged` of every kernel: outputs that some task may bind with fewer rows than the tile.

    A kernel's loops may end with the bound rows. A missing name costs time, not correctness: a later run may bind shorter tensors.
    """
    ragged: list[dict[str, None]] = [{} for _ in plan.kernels]
    for task in submits(plan):
        for param, place in zip(plan.kernels[task.kernel].kernel.memory_params, task.places, strict=True):
            if isinstance(param, TileParam) and not param.role.reads and declared(place.extent[0]) != Const(param.type.rows):
                ragged[task.kernel][param.name] = None
    return replace(plan, kernels=tuple(replace(use, ragged=tuple(ragged[at])) for at, use in enumerate(plan.kernels)))


def verify_after_find_ragged_outputs(plan: TaskPlan) -> None:
    """What is ragged is only written."""
    for use in plan.kernels:
        if any(param.role.reads for param in use.kernel.memory_params if param.name in use.ragged):
            raise InternalError("rows that are read are left out", ", ".join(use.ragged))


# -- repeated checks ---------------------------------------------------------------------------------------------------
def drop_repeated_checks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Return the plan without checks that an earlier statement has certainly made.

        X[i], Y[i] in one task; X[i], Z[i] in the next  →  the second task checks Z[i] alone

    Compared values are constant within an iteration, so a check need not be repeated by later statements of the same body or of loops
    inside. A check on an element that tasks write is never dropped: the element may have changed.
    """
    del context
    return _without_repeats(plan)


def _without_repeats(plan: TaskPlan) -> TaskPlan:
    reads = Reads.of(plan)

    def fresh(note: Precondition, held: set[Check]) -> Precondition:
        new: list[Check] = []
        for check in note.checks:
            if reads.within(check.value, check.lower, check.upper):
                new.append(check)
            elif _comparison(check) not in held:
                held.add(_comparison(check))
                new.append(check)
        return replace(note, checks=tuple(new))

    def forget(held: set[Check], slots: Collection[int]) -> None:
        """Remove the checks that compare these slots, whose values have changed."""
        if slots:
            held -= {check for check in held if not _slots_in(check).isdisjoint(slots)}

    def sequence(body: Body, held: set[Check]) -> Body:
        return Sequence(tuple(without(item, held) for item in body.items))

    def choice(branches: tuple[PlanBranch, ...], otherwise: Body, held: set[Check]) -> PlanChoice:
        """The first condition is always asked, a later one when those before it do not hold."""
        asked = held
        made: list[PlanBranch] = []
        for branch in branches:
            note = fresh(branch.note, asked)
            made.append(replace(branch, note=note, body=sequence(branch.body, set(asked))))
            asked = set(asked)
        return Choice(tuple(made), sequence(otherwise, asked))

    def without(item: Item, held: set[Check]) -> Item:
        match item:
            case Do(task):
                return Do(replace(task, note=fresh(task.note, held)))
            case Loop():
                note = fresh(item.note, held)
                forget(held, slots_set(item.body))      # ahead of the body: the iteration before may have set them
                inside = set(held)                    # the body may never run
                through = None if item.through is None else replace(item.through, note=fresh(item.through.note, inside))
                return replace(item, note=note, through=through, body=sequence(item.body, inside))
            case Choice(branches, otherwise):
                decided = choice(branches, otherwise, held)
                forget(held, slots_set(item))
                return decided
            case Sides(sides):
                return Sides(tuple(sequence(side, held) for side in sides))
            case Sequence():
                return sequence(item, held)
            case Consume():
                forget(held, slots_set(item.body))
                return replace(item, body=sequence(item.body, set(held)))
            case Pipeline(processes):
                forget(held, slots_set(item))           # any process may set them
                return replace(item, processes=tuple(replace(each, body=sequence(each.body, set(held))) for each in processes))
            case _:
                changed: Item = with_notes(item, lambda note, _: fresh(note, held))
                forget(held, slots_set(item))
                return changed

    return replace(plan, body=sequence(plan.body, set()))


def verify_after_drop_repeated_checks(plan: TaskPlan) -> None:
    """No statement makes a comparison that an earlier one has made: there is nothing left to drop."""
    left = tuple(numbered.check for numbered in numbered_checks(_without_repeats(plan)))
    if len(left) != len(numbered_checks(plan)):
        repeated = next(numbered.check.subject for numbered, kept in zip(numbered_checks(plan), (*left, None), strict=False)
                        if numbered.check is not kept)
        raise InternalError("a check is repeated", repeated)


def _slots_in(check: Check) -> set[int]:
    return {node.slot for node in nodes((check.value, check.lower, check.upper)) if isinstance(node, SlotValue)}


def _comparison(check: Check) -> Check:
    """Return the check without the fields that only affect its message."""
    return replace(check, subject="", param="")


# -- streamed outputs --------------------------------------------------------------------------------------------------
_MUCH_BYTES = 16 << 20     # measured: from here on caches of 260 MiB cost more than they spare, the next reader's time included


def stream_outputs(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set `streamed` of every kernel: outputs larger than the caches, or of 16 MiB, that no task reads, in every task.

    A store past the caches writes whole lines without reading them first: a third less traffic for one output of two inputs. Smaller
    outputs stay in the caches for the next reader.
    """
    if context.cache_bytes is None:
        return plan
    large = [_passes_through(slot, context.cache_bytes) for slot in plan.tensors]
    kept: list[set[str]] = [set() for _ in plan.kernels]
    for task in submits(plan):
        params = plan.kernels[task.kernel].kernel.memory_params
        kept[task.kernel] |= {param.name for param, place in zip(params, task.places, strict=True) if not large[place.slot]}
    kernels = tuple(replace(use, streamed=tuple(p.name for p in use.kernel.memory_params if p.name not in kept[at]))
                    for at, use in enumerate(plan.kernels))
    return replace(plan, kernels=kernels)


def verify_after_stream_outputs(plan: TaskPlan) -> None:
    """What is streamed is only written."""
    for use in plan.kernels:
        if any(param.role.reads for param in use.kernel.memory_params if param.name in use.streamed):
            raise InternalError("an output that is read goes past the caches", ", ".join(use.streamed))


def _passes_through(slot: TensorSlot, cache_bytes: int) -> bool:
    return slot.writes and not slot.reads and prod(slot.ref.shape) * slot.ref.dtype.nbytes >= min(cache_bytes + 1, _MUCH_BYTES)
