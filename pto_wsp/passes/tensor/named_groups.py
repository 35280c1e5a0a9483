"""Find the group that a plan names for a statement, and refuse names that the function cannot follow.

Groups that a pass chose for a saved plan are followed first, if the function would be divided otherwise today; then groups by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pto_wsp.errors import PlanConflictError, PlanNameError
from pto_wsp.ir.tensor_function import Apply, Array, Item, Make, Put, Statement, TensorFunction
from pto_wsp.passes.tensor.axes import statements_of
from pto_wsp.passes.tensor.effects import named_by
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import here
from pto_wsp.wording import nearest

Groups = Mapping[str, tuple[str, ...]]


class NamedGroups:
    """The groups of a plan by the values that statements of a function make. `followed`: groups that a pass chose; `asked`: by hand."""

    def __init__(self, function: TensorFunction, asked: Groups, followed: Groups) -> None:
        self.asked = asked
        self._followed = followed
        self._n_writes: Counter[int] = Counter()
        self._turns: dict[int, int] = {}      # of writes, by Python id: how many earlier ones write the same array
        for one in statements_of(function.body.items):
            if isinstance(one, Put):
                self._turns[id(one)] = self._n_writes[one.target.array.id]
                self._n_writes[one.target.array.id] += 1

    def n_writes(self, array: Array) -> int:
        """Return how many statements write to an array."""
        return self._n_writes[array.id]

    def name_of(self, item: Item) -> str:
        """Return the group of an item that the plan names, or that the item is marked with; "" for none."""
        for statement in statements_of((item,)):
            name = self._name_of(statement)
            if name or (not isinstance(statement, Make) and statement.group):
                return name or getattr(statement, "group", "")
        return ""

    def _name_of(self, statement: Statement) -> str:
        """Return the group of the plan that lists a value of a statement; a group lists `x#2` so, or as `x`, for every `x#n`."""
        if not self.asked and not self._followed:
            return ""
        names = [array.name for array in named_by(statement)]
        followed = [group for group, values in self._followed.items() if any(name in values for name in names)]
        if isinstance(statement, Put) and len(followed) > 1:      # a kernel for each write, in the order of the writes
            return followed[self._turns[id(statement)]] if len(followed) == self._n_writes[statement.target.array.id] else ""
        if followed:
            return followed[0]
        for wanted in (names, [name.partition("#")[0] for name in names]):
            for group, values in self.asked.items():
                if any(name in values for name in wanted):
                    return group
        return ""


def groups_in(plan: TilePlan, by_hand: bool) -> Groups:
    """Return the groups by hand, or the groups that `partition` chose before, as a saved plan or a plan in use again has."""
    return {entry.name: tuple(map(str, entry.value)) for entry in plan.entries
            if entry.key == "groups" and entry.by_hand is by_hand and isinstance(entry.value, tuple)}


def group_divided(name: str, items: Sequence[Item], instead: str = "") -> PlanConflictError:
    """Return the error of a group by hand whose statements cannot share a kernel. `instead`: what may help before the usual help."""
    statement = next(statements_of(items))
    value = statement.results[0].name if isinstance(statement, Apply) else "this write"
    return PlanConflictError(f"the group `{name}` cannot compute `{value}` as well", statement.span,
                             expected="values that a task can compute from tiles of the same rows and columns",
                             found="a sum over an axis that the others are cut along, a part of a value, a read behind a write, or a "
                             "kernel that must run between them",
                             help=f"{instead}give the value a group of its own")


def check_followed(saved: Groups, made: Groups, function: TensorFunction) -> None:
    """Check that a function is divided as a plan says that was saved.

    Raises: J302 for a group or a value that the function does not have any more, J303 for values that cannot share a kernel any more.
    """
    known = [array.name for statement in statements_of(function.body.items) for array in named_by(statement)]
    for name, values in saved.items():
        lost = next((value for value in values if value not in known and value not in made), None)
        if lost is not None:
            near = nearest(lost, known)
            raise PlanNameError(f"the plan's group `{name}` matches nothing: the function computes no `{lost}`", here(),
                                expected=f"one of {', '.join(dict.fromkeys(known))}",
                                help=(f"did you mean {near}? " if near else "") + "f.plan(...) plans the function as it is now")
        if made.get(name) != values:
            raise PlanConflictError(f"the function is not divided as the plan's group `{name}` says", here(), expected=", ".join(values),
                                    found=f"{', '.join(made[name])}" if name in made else f"kernels {', '.join(made)}",
                                    help="f.plan(...) plans the function as it is now")
