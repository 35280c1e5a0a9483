"""Say how each loop runs on vectors.

    rows 16:                         rows 16:
        columns 100:                     columns 100, 64 lanes:
            %1 = rowsum %0       →           %1 = rowsum %0

A float reduction of a row that is long enough runs in lanes that are folded in a fixed order: it vectorises, and its bits do not
depend on the machine. A loop over rows without columns is itself a vector loop.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.spec import RowReduce
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext

LANES = 64


def vectorise(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with the lanes of its loops over columns, and the loops over rows that are vector loops."""
    return replace(kernel, body=_vectorised(kernel.body))


def verify_after_vectorise(kernel: k.Kernel) -> None:
    """No loop over rows is a vector loop and holds one."""
    assert not any(stmt.vector and any(isinstance(inner, k.Columns) for inner in stmt.body)
                   for stmt in walk(kernel.body) if isinstance(stmt, k.Rows))


def _vectorised(body: Body) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, _vectorised)
        match stmt:
            case k.Rows():
                stmt = replace(stmt, vector=stmt.rows > 1 and not any(isinstance(inner, k.Columns) for inner in stmt.body))
            case k.Columns(cols, inner_body) if cols >= LANES // 4 and any(_adds_floats(inner) for inner in inner_body):
                stmt = replace(stmt, lanes=LANES)
            case _:
                pass
        out.append(stmt)
    return tuple(out)


def _adds_floats(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Compute) and isinstance(find(stmt.op), RowReduce) and stmt.result.type.dtype.is_float
