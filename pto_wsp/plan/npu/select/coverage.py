"""What selection makes of each op, for people: one instruction, several, or nothing.

>>> npu_form("exp"), npu_form("tanh"), npu_form("no_such_op")
('TEXP', 'composed', '')
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import TABLE, find
from pto_wsp.plan.npu.select.carried import ON_CHIP
from pto_wsp.plan.npu.select.refusal import vector_dtypes
from pto_wsp.plan.npu.select.rules.registry import ONE_INSTRUCTION, RULES
from pto_wsp.types.dtype import DType

NATIVE: Mapping[str, str] = MappingProxyType({op: name for op in ONE_INSTRUCTION if (name := find(op).npu) is not None})


def npu_form(op: str) -> str:
    """Return the instruction that an op is, "composed" for several, "" for an op that is refused."""
    if _on_cube(op):
        return find(op).npu or ""
    return NATIVE.get(op, "composed" if op in RULES else "")


def npu_lacks(op: str) -> tuple[DType, ...]:
    """Return dtypes that others of its ops take on vector cores, but not this one."""
    if _on_cube(op):
        return ()
    return tuple(dtype for dtype in find(op).dtypes if dtype in ON_CHIP and dtype not in vector_dtypes(op))


def _on_cube(op: str) -> bool:
    entry = TABLE.get(op)
    return entry is not None and entry.unit is Unit.CUBE
