"""Scalar expressions of workloads: the names of `pto_wsp` for numbers that are known when tasks are made, together."""

from pto_wsp.frontend.workload.slots import slot_load_u64, slot_set_u64, slot_u64
from pto_wsp.frontend.workload.trace import axis
from pto_wsp.types.scalar_functions import ceildiv, maximum, minimum, symbol_f32, symbol_u64
from pto_wsp.types.symbolic import Symbol

__all__ = [
    "Symbol", "axis", "ceildiv", "maximum", "minimum", "slot_load_u64", "slot_set_u64", "slot_u64", "symbol_f32", "symbol_u64",
]
