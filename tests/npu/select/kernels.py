"""Kernels for one core as the NPU plan makes them, from `@kernel` functions."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp import Kernel
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir.kernel import TileParam
from pto_wsp.npu.isa.tile_program import ParamAccess, TileProgram
from pto_wsp.npu.plan.model import NpuKernel
from pto_wsp.npu.select.select import select
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import TILE_PASSES, run_kernel_passes


def vector_kernel(kernel: Kernel, access: dict[str, ParamAccess] | None = None, **given: object) -> NpuKernel:
    """Return a kernel for a vector core. `access`: of the parameters that are not plain tiles, whole and row-major."""
    ir = kernel.specialise(**given)
    ir = run_kernel_passes(ir, KernelContext(frozenset(p.name for p in ir.memory_params)), TILE_PASSES)
    plain = {p.name: whole(p.type.rows, p.type.cols) if isinstance(p, TileParam) else ParamAccess(0, 1) for p in ir.memory_params}
    return NpuKernel(ir, Unit.VECTOR, tuple((access or {}).get(name, found) for name, found in plain.items()))


def whole(rows: int, cols: int) -> ParamAccess:
    """Return the access of a row-major parameter of that shape."""
    return ParamAccess(0, 1, rows=rows, cols=cols, unit_rows=cols == 1)


def ragged(access: ParamAccess) -> ParamAccess:
    """Return the access with rows that the descriptor tells, as many as all others of the kind."""
    return replace(access, rows=None, row_group=0)


def selected(kernel: Kernel, access: dict[str, ParamAccess] | None = None, arch: str = "ascend_910b", **given: object) -> TileProgram:
    """Return the tile program of a kernel for a vector core."""
    return select(vector_kernel(kernel, access, **given), builtin_arch(arch))
