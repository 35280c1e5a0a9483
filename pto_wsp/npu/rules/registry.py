"""The table of selection rules, by op name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.rules import elementwise, functions, masks, movement, order
from pto_wsp.npu.rules.builder import Builder, ChipTile

Rule: TypeAlias = Callable[[Builder, k.Compute], ChipTile]

_FAMILIES: tuple[Mapping[str, Rule], ...] = (
    elementwise.CREATE_RULES, elementwise.ELEMENTWISE_RULES, functions.FUNCTION_RULES, order.REDUCE_RULES, functions.COMPOSED_RULES,
    masks.MASK_RULES, masks.BIT_RULES, masks.CAST_RULES, movement.MOVEMENT_RULES, order.ORDER_RULES, movement.PLACE_RULES)
RULES: Mapping[str, Rule] = elementwise.with_u32({name: rule for family in _FAMILIES for name, rule in family.items()})
# Dtypes that lie on chip, and that the rule of an op does not take all the same.
LACKING: Mapping[str, tuple[DType, ...]] = {**functions.LACKING, **order.LACKING}
# Ops whose rules wrap integers themselves.
WRAPPED = frozenset({"not_", "shl", "iota", "cast"})
# Ops that are one instruction on f32, where the op table names one; on halves conversions stand around it.
ONE_INSTRUCTION = (*elementwise.ELEMENTWISE_RULES, *functions.FUNCTIONS, *order.REDUCE_RULES, "transpose", "expand")
assert len(RULES) == sum(map(len, _FAMILIES)), "two rules for one op"
