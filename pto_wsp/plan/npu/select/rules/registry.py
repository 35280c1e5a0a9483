"""The rule of each op, by its name in the op table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.rules.across import movement, order, place, reduce
from pto_wsp.plan.npu.select.rules.elements import bits, cast, composed, create, elementwise, functions, masks, unsigned
from pto_wsp.types.dtype import DType

Rule: TypeAlias = Callable[[Builder, k.Compute], Held]

_FAMILIES: tuple[Mapping[str, Rule], ...] = (create.RULES, elementwise.RULES, functions.RULES, reduce.RULES, composed.RULES, masks.RULES,
                                         bits.RULES, cast.RULES, movement.RULES, order.RULES, place.RULES)
RULES: Mapping[str, Rule] = unsigned.with_u32({name: rule for family in _FAMILIES for name, rule in family.items()})
# Dtypes that lie on chip, and that the rule of an op does not take all the same.
LACKING: Mapping[str, tuple[DType, ...]] = {**composed.LACKING, **order.LACKING}
# Ops whose rules wrap integers themselves.
WRAPPED = frozenset({"not_", "shl", "iota", "cast"})
# Ops that are one instruction on f32, where the op table names one; on halves conversions stand around it.
ONE_INSTRUCTION = (*elementwise.RULES, *functions.FUNCTIONS, *reduce.RULES, "transpose", "expand")
assert len(RULES) == sum(map(len, _FAMILIES)), "two rules for one op"
