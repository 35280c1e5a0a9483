"""Which elements the orchestrator waits for: those of tensors that tasks of the same plan write.

    for e in P(8):  for i in P(counts[e])     →    wait for the tasks that write counts[e], read it once, then make the inner tasks

A scalar is evaluated where its statement stands in program order, so what tasks before it write must be there, and what tasks behind
it write must not. An element is waited for before anything is made of its value, and after the check that its own index is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import Branch, Check, Choice, Item, Loop, Read, Send, SetSlot, Submit, TaskPlan, TensorSlot
from pto_wsp.plan.walk import map_items
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass

MAX_READS = 32    # elements of one wait: PTO_MAX_ARGS

Step: TypeAlias = "Check | tuple[Read, ...]"


@dataclass(frozen=True, slots=True)
class Reads:
    """Finds the elements in scalars that tasks of a plan write. `slots`: by the id of their tensors; `made`: those that bodies make."""

    slots: Mapping[int, int]
    made: frozenset[int] = frozenset()

    @staticmethod
    def of(plan: TaskPlan) -> Reads:
        """Return what finds the reads of a plan."""
        return Reads({slot.ref.id: number for number, slot in enumerate(plan.tensors) if waited_for(slot)},
                     frozenset(slot.ref.id for slot in plan.tensors if slot.fresh))

    def within(self, *roots: object) -> tuple[Read, ...]:
        """Return the elements read in scalars as places in memory, those that index another one before it."""
        return tuple(dict.fromkeys(Read(self.slots[element.tensor.id], self.offset(element)) for element in self.elements(*roots)))

    def elements(self, *roots: object) -> tuple[s.Element, ...]:
        """Return the elements read in scalars, those that index another one before it."""
        if not self.slots:
            return ()
        found: dict[s.Element, None] = {}
        for root in roots:
            for node in reversed(tuple(nodes(root))):
                if isinstance(node, s.Element) and node.tensor.id in self.slots:
                    found.setdefault(node)
        return tuple(found)

    def offset(self, element: s.Element) -> s.Scalar:
        """Return where an element lies from the first of its tensor, in elements."""
        ref = element.tensor
        offset: s.Scalar = s.Const(0)
        for dim, position in enumerate(element.index):
            stride = s.Const(ref.layout.strides[dim]) if ref.id in self.made else s.StrideOf(ref, dim)
            offset = s.add(offset, s.mul(position, stride))
        return offset

    def preparation(self, waits: tuple[Read, ...], checks: tuple[Check, ...]) -> tuple[Step, ...]:
        """Return the checks of a node in their order, and before each the elements that it compares; then what is left to wait for."""
        done: set[Read] = set()

        def rounds(reads: tuple[Read, ...]) -> Iterator[tuple[Read, ...]]:
            """Reads that can be waited for at once: the offset of none is made of another."""
            left = tuple(read for read in reads if read not in done)
            while left:
                ready = tuple(read for read in left if done.issuperset(self.within(read.offset)))[:MAX_READS]
                if not ready:
                    raise InternalError("an element is waited for and not what indexes it", print_scalar(left[0].offset))
                yield ready
                done.update(ready)
                left = tuple(read for read in left if read not in done)

        steps: list[Step] = []
        for check in checks:
            steps.extend(rounds(self.within(check.value, check.lower, check.upper)))
            steps.append(check)
        steps.extend(rounds(waits))
        return tuple(steps)


def waited_for(slot: TensorSlot) -> bool:
    """Tell whether the orchestrator reads elements of a tensor that tasks write."""
    return slot.scalars and slot.writes


def has_waits(plan: TaskPlan) -> bool:
    """Tell whether what the orchestrator of a plan does depends on what tasks compute."""
    return any(waited_for(slot) for slot in plan.tensors)


def with_waits(plan: TaskPlan) -> TaskPlan:
    """Return the plan with `waits` of every node that evaluates an element which tasks write."""
    reads = Reads.of(plan)
    return map_items(plan, lambda item: _waiting(item, reads.within)) if reads.slots else plan


def _waiting(item: Item, within: Callable[..., tuple[Read, ...]]) -> Item:
    match item:
        case Submit():
            parts = tuple((place.offset, place.extent, place.stride) for place in item.places)
            return replace(item, waits=within(*_compared(item.checks), item.index, *parts, item.scalars))
        case Loop(through=through):
            walk = None if through is None else replace(through, waits=within(*_compared(through.checks), through.value))
            return replace(item, waits=within(*_compared(item.checks), item.start, item.stop, item.step), through=walk)
        case Choice(branches):
            return replace(item, branches=tuple(_waiting_branch(branch, within) for branch in branches))
        case SetSlot():
            return replace(item, waits=within(*_compared(item.checks), item.value))
        case Send():
            return replace(item, waits=within(*_compared(item.checks), item.payload))
        case _:
            return item


def _waiting_branch(branch: Branch, within: Callable[..., tuple[Read, ...]]) -> Branch:
    return replace(branch, waits=within(*_compared(branch.checks), branch.condition))


def _compared(checks: tuple[Check, ...]) -> Iterator[object]:
    for check in checks:
        yield (check.value, check.lower, check.upper)
