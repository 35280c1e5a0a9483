"""What selection makes of each op, for people: one instruction, several, or nothing.

>>> npu_form("exp"), npu_form("tanh"), npu_form("no_such_op")
('TEXP', 'composed', '')
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pto_wsp.ops.table import TABLE
from pto_wsp.plan.npu.select.carried import ON_CHIP
from pto_wsp.plan.npu.select.refusal import vector_dtypes
from pto_wsp.plan.npu.select.rules.across import reduce
from pto_wsp.plan.npu.select.rules.elements import elementwise, functions
from pto_wsp.plan.npu.select.rules.registry import RULES
from pto_wsp.types.dtype import DType

# Ops that are one instruction on f32; on halves conversions stand around it.
NATIVE: Mapping[str, str] = MappingProxyType({
    **{op: f"T{stem}" for op, stem in elementwise.BINARY.items()}, "abs": "TABS", "neg": "TNEG", "relu": "TRELU", **functions.FUNCTIONS,
    **{op: name for op, name in reduce.ROW.items() if op != "rowmean"},
    **{op: f"TCOL{stem}" for op, stem in reduce.COLUMN.items() if op != "colmean"}, "transpose": "TTRANS", "expand": "TEXPANDS"})


def npu_form(op: str) -> str:
    """Return the instruction that an op is, "composed" for several, "" for an op that is refused."""
    if op == "matmul":
        return "TMATMUL"
    return NATIVE.get(op, "composed" if op in RULES else "")


def npu_lacks(op: str) -> tuple[DType, ...]:
    """Return dtypes that others of its ops take on vector cores, but not this one."""
    return tuple(dtype for dtype in TABLE[op].dtypes if dtype in ON_CHIP and dtype not in vector_dtypes(op)) if op != "matmul" else ()
