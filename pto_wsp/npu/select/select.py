"""Select the instructions of a kernel for its core, and describe the selection of each op for the documentation.

>>> npu_form("exp"), npu_form("tanh"), npu_form("no_such_op")
('TEXP', 'composed', '')
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pto_wsp.arch.model import Arch
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.plan.model import NpuKernel
from pto_wsp.npu.rules.operands import ON_CHIP
from pto_wsp.npu.rules.registry import ONE_INSTRUCTION, RULES
from pto_wsp.npu.select.cube import select_cube
from pto_wsp.npu.select.vector import select_vector, vector_dtypes
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import TABLE, find

NATIVE: Mapping[str, str] = MappingProxyType({op: name for op in ONE_INSTRUCTION if (name := find(op).npu) is not None})


def npu_form(op: str) -> str:
    """Return the instruction of an op, "composed" for several instructions, "" for an op that is refused."""
    if _on_cube(op):
        return find(op).npu or ""
    return NATIVE.get(op, "composed" if op in RULES else "")


def npu_lacks(op: str) -> tuple[DType, ...]:
    """Return the dtypes of an op that vector cores support in general, but not for this op."""
    if _on_cube(op):
        return ()
    return tuple(dtype for dtype in find(op).dtypes if dtype in ON_CHIP and dtype not in vector_dtypes(op))


def _on_cube(op: str) -> bool:
    entry = TABLE.get(op)
    return entry is not None and entry.unit is Unit.CUBE


def select(use: NpuKernel, arch: Arch) -> TileProgram:
    """Return the tile program of a kernel for its core.

    Raises: N103 at the line of an op without an instruction on the arch, N104 at the line of an operation that the cube core cannot do.
    """
    if use.core is Unit.VECTOR:
        return select_vector(use, arch)
    return select_cube(use, arch)
