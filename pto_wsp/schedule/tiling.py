"""Define `TilePlan`: how a function on whole tensors is cut into kernels, tasks and scratch tensors, as data.

A plan is a table of entries: a key (`tiles`), the name of a value or group in the user's function, an axis where the key needs one, and a
value. A pass that chooses writes its choice with its reason where the plan says nothing, and then does what the plan says. So choices of
the compiler and of a person take one path. No entry changes what the function means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from pto_wsp.values import dataclass

# the keys, each with what it says
KEYS = {
    "groups": "the values that one kernel computes",
    "tiles": "the extent of a task's tile along an axis",
    "inner": "the steps of a product inside a core: m, n, k, and which operand stays",
    "batch": "how many neighbouring tiles one task computes",
    "tails": "how an axis that tiles do not divide ends: a short last tile, or tiles of falling sizes",
    "split": "the pieces of a sum, which a further task adds up",
    "loops": "whether a loop of the function is a loop of a kernel or of tasks",
    "order": "the nesting of a group's task loops",
    "keep": "where a value between kernels lies: scratch of a task, of the whole tensor, or computed again",
    "flat": "the axes that are the rows of a tile",
    "allow": "rewrites that change the order of sums",
    "tunables": "the values of the function's Tunable parameters",
}
PlanValue: TypeAlias = int | str | bool | tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One choice. `axis`: a symbol, or the number of a dimension of the value, as text; "" where the key has no axis.

    `reason`: what was compared, with cost and capacity; "" of an entry by hand.
    """

    key: str
    name: str
    axis: str
    value: PlanValue
    reason: str = ""
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class TilePlan:
    """The plan of one function for one arch and target. `sizes`: the numbers that stand for symbols in costs, by name."""

    function: str
    arch: str
    target: str
    sizes: tuple[tuple[str, int], ...] = ()
    entries: tuple[PlanEntry, ...] = ()

    def said(self, key: str, name: str = "", axis: str = "") -> PlanEntry | None:
        """Return the entry for a key, name and axis; None where the plan says nothing."""
        return next((entry for entry in self.entries if (entry.key, entry.name, entry.axis) == (key, name, axis)), None)

    def with_choice(self, key: str, name: str, axis: str, value: PlanValue, reason: str) -> TilePlan:
        """Return the plan with an entry of the compiler's, where the plan says nothing; the plan itself where it says something."""
        if self.said(key, name, axis) is not None:
            return self
        return replace(self, entries=(*self.entries, PlanEntry(key, name, axis, value, reason)))
