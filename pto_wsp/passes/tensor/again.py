"""Compute the values that the plan keeps as `"again"` in every kernel that reads them, in place of memory between kernels.

    normed: normed = x / root * g          before, with keep={"normed": "again"}
    out: out = normed @ w

    out: normed = x / root * g             after
    out: out = normed @ w

All that the value's group computes is computed again. Nothing of it may be read elsewhere, and nothing that it reads may be written
between.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.errors import PlanConflictError
from pto_wsp.ir import flow
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body, Item, Make, Put, TensorFunction
from pto_wsp.passes.tensor.axes import defined_by, statements_of
from pto_wsp.passes.tensor.effects import Effects, effects_of, fresh_ids, group_name, made_by, users_of, with_views
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tiling_entries import match_of


def again_in(plan: TilePlan) -> frozenset[str]:
    """Return the names of the values that the plan computes again."""
    return frozenset(entry.name for entry in plan.all_said("keep", "again"))


def computed_again(function: TensorFunction, plan: TilePlan) -> Body:
    """Return the body of a divided function, with the groups of values that are computed again copied into the groups that read them.

    Raises: J303 where the value is a result, is read by no kernel of its body, or reads what is written meanwhile.
    """
    return _Again(function, again_in(plan)).body(function.body)


class _Again:
    def __init__(self, function: TensorFunction, names: frozenset[str]) -> None:
        self._names = names
        self._users = users_of(function)
        self._ids = fresh_ids(function)

    def body(self, body: Body) -> Body:
        """Return a body, those inside included."""
        items = [item if isinstance(item, flow.Do) else flow.with_bodies(item, self.body) for item in body.items]
        for value in [array for item in items for array in defined_by((item,)).values() if made_by(item) is None and self._is_again(array)]:
            items = self._without(items, value)
        return replace(body, items=tuple(items))

    def _is_again(self, array: Array) -> bool:
        return any(match_of(name, array.name) >= 0 for name in self._names)

    def _without(self, items: list[Item], value: Array) -> list[Item]:
        """Return the items with the group of a value in each of its readers' groups."""
        home = next(group_name(item) for item in items if value.id in defined_by((item,)))
        own = [item for item in items if group_name(item) == home]
        rest = [item for item in items if group_name(item) != home]
        span = next(statement.span for statement in statements_of(own))
        defined = defined_by(own)
        mine = {id(statement) for statement in statements_of(own)}
        if self._users.get(value.id, frozenset()) <= mine:
            return items            # its readers stand in its group
        readers: dict[str, list[Item]] = {}
        for item in rest:
            if effects_of(item).reads & defined.keys():
                readers.setdefault(group_name(item), []).append(item)
        inside = {id(statement) for found in readers.values() for item in found for statement in statements_of((item,))}
        outside = any(not self._users.get(one, frozenset()) <= mine | inside for one in defined)
        writes = any(isinstance(statement, Put | Make) for statement in statements_of(own))
        if "" in readers or not readers or outside or writes:
            raise PlanConflictError(f"`{value.name}` cannot be computed again", span,
                                    expected="a value that kernels of the same body read, and no result of the function",
                                    found=f'keep={{{value.name!r}: "again"}}')
        made: list[Item] = []
        between = Effects()
        started: dict[str, dict[int, Array]] = {}
        for item in items:
            name = group_name(item)
            if name == home:
                continue
            if name in readers and name not in started:
                if any(effects_of(one).reads & between.writes for one in own):
                    raise PlanConflictError(f"`{value.name}` cannot be computed again: what it reads is written meanwhile", span,
                                            found=f'keep={{{value.name!r}: "again"}}')
                started[name] = {one: replace(array, id=next(self._ids)) for one, array in defined.items()}
                made.extend(self._clone(one, started[name], name) for one in own)
            between |= effects_of(item)
            made.append(self._clone(item, started[name], name) if item in readers.get(name, ()) else item)
        return made

    def _clone(self, item: Item, arrays: dict[int, Array], group: str) -> Item:
        def view(one: ArrayView) -> ArrayView:
            return ArrayView(arrays.get(one.array.id, one.array), one.steps)

        def inner(one: Item) -> Item:
            if not isinstance(one, flow.Do):
                return flow.with_bodies(one, lambda body: replace(body, items=tuple(map(inner, body.items))))
            changed = with_views(one.leaf, view)
            if isinstance(changed, Apply):
                changed = replace(changed, results=tuple(arrays.get(array.id, array) for array in changed.results), group=group)
            return flow.Do(changed)

        return inner(item)
