"""Which unit of a core a kernel needs."""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import walk
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import find


def unit_of(kernel: k.Kernel) -> Unit:
    """Return the cube unit for a kernel that multiplies matrices, in Python or in the text of a body of its own, else the vector unit."""
    multiplies = any(isinstance(stmt, k.Accumulate) or (isinstance(stmt, k.Compute) and find(stmt.op).unit is Unit.CUBE)
                     for stmt in walk(kernel.body))
    return Unit.CUBE if multiplies or any("TMATMUL" in own.text for own in kernel.bodies) else Unit.VECTOR
