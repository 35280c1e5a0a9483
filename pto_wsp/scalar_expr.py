"""Scalar expressions of workloads: the names of `pto_wsp` for numbers that are known when tasks are made, together."""

from pto_wsp.ir.symbolic import Symbol, ceildiv, maximum, minimum, symbol_f32, symbol_u64
from pto_wsp.trace.workload.loops import slot_load_u64, slot_set_u64, slot_u64
from pto_wsp.trace.workload.trace import axis

__all__ = [
    "Symbol", "axis", "ceildiv", "maximum", "minimum", "slot_load_u64", "slot_set_u64", "slot_u64", "symbol_f32", "symbol_u64",
]
