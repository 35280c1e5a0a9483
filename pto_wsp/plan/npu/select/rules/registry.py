"""The rule of each op, by its name in the op table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.rules.across import movement, order, place, reduce
from pto_wsp.plan.npu.select.rules.elements import bits, cast, composed, create, elementwise, functions, masks, unsigned

Rule: TypeAlias = Callable[[Builder, k.Compute], Held]

_FAMILIES: tuple[Mapping[str, Rule], ...] = (create.RULES, elementwise.RULES, functions.RULES, reduce.RULES, composed.RULES, masks.RULES,
                                         bits.RULES, cast.RULES, movement.RULES, order.RULES, place.RULES)
RULES: Mapping[str, Rule] = unsigned.with_u32({name: rule for family in _FAMILIES for name, rule in family.items()})
assert len(RULES) == sum(map(len, _FAMILIES)), "two rules for one op"
