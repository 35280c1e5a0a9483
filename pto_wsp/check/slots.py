"""Check that every read of a slot has one value in every order that the workload leaves open.

A slot set in an iteration of an unordered loop has no defined value in other iterations or after the loop. The same holds between the sides
of a combine. A read is sound if the slot was set before it in the same iteration, or before the loop and nowhere inside. Processes of a
pipeline set no slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from pto_wsp.errors import PtoError, SlotOrderError
from pto_wsp.ir.flow import Choice, Consume, Do, Loop, Pipeline, Send, Sequence, Sides, assignments, evaluations, slots_set
from pto_wsp.ir.plan import Body, Item, PlanLoop, TaskPlan
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import SlotValue
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a slot's value is undefined: where the slot is set, and which unordered parts set it."""

    set_at: Span
    parts: str


State: TypeAlias = Mapping[int, Doubt]     # slots with an undefined value


def slot_errors(plan: TaskPlan) -> tuple[PtoError, ...]:
    """Return an error for each read of a slot whose value would depend on an order that the workload leaves open."""
    if not slots_set(plan.body):
        return ()
    errors: dict[tuple[Span, int], PtoError] = {}

    def read(state: State, span: Span, *roots: object) -> None:
        for slot in _slots_read(*roots):
            if slot in state:
                errors.setdefault((span, slot), _error(slot, span, state[slot]))

    def visit(item: Item, state: State) -> State:
        evaluated, slots = evaluations(item), {place.slot for place, _ in assignments(item)}
        match item:
            case Do(task):
                read(state, task.span, task.note.checks, task.index, task.places, task.scalars, task.worker)
            case Send():
                read(state, item.span, item.note.checks, item.payload)
            case Loop():
                read(state, item.span, item.note.checks, item.start, item.stop, item.step)
                return loop(item, state)
            case Consume():
                return again(item.body, state)
            case Choice(branches, otherwise):
                ends: list[State] = []
                for branch in branches:
                    read(state, branch.span, branch.note.checks, branch.condition)
                    ends.append(visit(branch.body, state))
                return _either((*ends, visit(otherwise, state)))
            case Sequence(items):
                for inner in items:
                    state = visit(inner, state)
            case Sides(sides):
                return apart(sides, state, "the sides of a combine")
            case Pipeline(processes):      # no process sets a slot
                for process in processes:
                    visit(process.body, state)
            case _:
                for each in evaluated:
                    read(state, each.span, each.node.note.checks, each.scalars)
                return {slot: doubt for slot, doubt in state.items() if slot not in slots}
        return state

    def loop(item: PlanLoop, state: State) -> State:
        if item.ordered:
            return again(item.body, state, item)
        who = f"iterations of the loop over `{item.known_var.name}`"
        doubts = {slot: Doubt(span, who) for slot, span in slots_set(item.body).items()}
        iterate({**state, **doubts}, item)
        return {**state, **doubts}

    def again(body: Body, state: State, item: PlanLoop | None = None) -> State:
        """A body that runs any number of times, each after the one before."""
        once = _either((state, iterate(state, item) if item is not None else visit(body, state)))
        return _either((state, iterate(once, item) if item is not None else visit(body, once)))

    def iterate(state: State, item: PlanLoop) -> State:
        if item.through is not None:
            read(state, item.span, item.through.note.checks, item.through.value)
        return visit(item.body, state)

    def apart(parts: tuple[Body, ...], state: State, called: str) -> State:
        """Check unordered parts: no part may read a slot that another part sets; a slot that a single part sets is defined after all."""
        sets = [slots_set(part) for part in parts]
        end = dict(state)
        for number, part in enumerate(parts):
            others = {slot: Doubt(span, called) for k, found in enumerate(sets) if k != number for slot, span in found.items()}
            after = visit(part, {**state, **others})
            for slot in sets[number]:
                doubt = others.get(slot, after.get(slot))
                if doubt is None:
                    end.pop(slot, None)
                else:
                    end[slot] = doubt
        return end

    visit(plan.body, {})
    return tuple(errors.values())


def _either(states: Iterable[State]) -> State:
    return {slot: doubt for state in states for slot, doubt in state.items()}


def _slots_read(*roots: object) -> Iterator[int]:
    for root in roots:
        for node in nodes(root):
            if isinstance(node, SlotValue):
                yield node.slot


def _error(slot: int, span: Span, doubt: Doubt) -> PtoError:
    return SlotOrderError(f"slot {slot} is read where its value depends on an order that nobody promises", span,
                          expected="a slot set before, in the same iteration or side",
                          found=f"slot {slot}, which {doubt.parts} set: they have no order",
                          help="set the slot in this body before it is read, or loop with P.seq",
                          notes=(f"it is set at {doubt.set_at}",))
