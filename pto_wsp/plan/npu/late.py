"""Checks that cannot be made before there are tasks: they depend on elements that tasks of the plan write.

Those are made where the orchestration comes to them. So are all that stand in a loop, or in a way of a fork, that is there or not by
what tasks compute, and all that depend on what tokens carry.
"""

from __future__ import annotations

from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import Check, Receive, Send, SetSlot
from pto_wsp.plan.npu.model import Drain, Fork, Launch, Lead, NpuItem, NpuPlan, Repeat, Way
from pto_wsp.plan.npu.walk import inner_items, items_of
from pto_wsp.plan.waits.elements import waited_for
from pto_wsp.types import scalar as s

Checked = Launch | Repeat | Lead | Way | SetSlot | Send


class Late:
    """What of a plan is known only when tasks have run. It goes by identity: two loops may be equal."""

    def __init__(self, plan: NpuPlan) -> None:
        self._written = {slot.ref.id for slot in plan.tensors if waited_for(slot)}
        # Slots and variables that hold what tasks have computed, or what a token has brought.
        self._values: set[s.Scalar] = {var for item in items_of(plan.body) if isinstance(item, Receive | Drain) for var in item.vars}
        self._checks: dict[int, tuple[Check, ...]] = {}
        n_known = -1
        while n_known != len(self._values):          # a slot that is set late in a loop is late in the loop's next turn
            n_known = len(self._values)
            self._walk(plan.body, late=False)

    def checks_of(self, item: Checked) -> tuple[Check, ...]:
        """Return those of an item's checks that are made where the orchestration comes to it."""
        return self._checks.get(id(item), ())

    def early_checks_of(self, item: Checked) -> tuple[Check, ...]:
        """Return those of an item's checks that can be made before anything is submitted."""
        late = self.checks_of(item)
        return tuple(check for check in item.checks if not any(check is other for other in late))

    def is_late(self, *nodes: s.Scalar) -> bool:
        """Tell whether scalars depend on what tasks compute."""
        return any(leaf in self._values or (isinstance(leaf, s.Element) and leaf.tensor.id in self._written)
                   for node in nodes for leaf in s.leaves(node))

    def waited_for(self, root: object) -> tuple[s.Element, ...]:
        """Return the elements in scalars that tasks write, each behind those that index it."""
        found = [node for node in nodes(root) if isinstance(node, s.Element) and node.tensor.id in self._written] if self._written else []
        return tuple(dict.fromkeys(reversed(found)))

    def _walk(self, item: NpuItem, *, late: bool) -> None:
        match item:
            case Launch() | Send():
                self._note(item, late=late)
            case Drain(body=body):
                self._walk(body, late=True)
            case SetSlot(slot, value):
                self._note(item, late=late)
                if late or self.is_late(value):
                    self._values.add(s.SlotValue(slot))
            case Repeat(start=start, stop=stop, step=step, lead=lead):
                self._note(item, late=late)
                late = late or self.is_late(start, stop, step)
                if lead is not None:
                    self._note(lead, late=late)
                    if self.is_late(lead.value):
                        self._values.add(lead.var)
                self._walk(item.body, late=late)
            case Fork(ways, otherwise):
                for way in ways:
                    self._note(way, late=late)
                    late = late or self.is_late(way.condition)
                    self._walk(way.body, late=late)
                self._walk(otherwise, late=late)
            case _:
                for inner in inner_items(item):
                    self._walk(inner, late=late)

    def _note(self, item: Checked, *, late: bool) -> None:
        checks = tuple(check for check in item.checks if late or self.is_late(check.value, check.lower, check.upper))
        if checks:
            self._checks[id(item)] = checks
