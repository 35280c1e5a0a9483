"""Split a kernel into parts for one core each."""

from __future__ import annotations

from pto_wsp.errors import MixedKernelError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import walk
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.passes import KernelObserver
from pto_wsp.plan.npu.split.part_of import part_of
from pto_wsp.plan.npu.split.parts import Part, SplitKernel
from pto_wsp.plan.npu.split.uses import NpuUse
from pto_wsp.types.scalar import ParamScalar


def split_kernel(kernel: k.Kernel, use: NpuUse, observe: KernelObserver | None = None) -> SplitKernel:
    """Return the parts of a kernel after its passes.

    Raises: N102 at a statement that needs both cores at once.
    """
    access = {param.name: one for param, one in zip(use.kernel.memory_params, use.access, strict=True)}
    if not kernel.has_meaning:   # the user's own body: it is given all of its parameters
        return SplitKernel((Part(kernel, Unit.VECTOR, use.access, tuple(ParamScalar(p.name, p.dtype) for p in kernel.scalar_params)),))
    units = {find(stmt.op).unit for stmt in walk(kernel.body) if isinstance(stmt, k.Compute)}
    if len(units) > 1:
        raise MixedKernelError("mixed", kernel.span)
    return SplitKernel((part_of(kernel, units.pop() if units else Unit.VECTOR, access),))
