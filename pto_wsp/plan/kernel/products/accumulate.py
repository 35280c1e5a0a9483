"""Add a product to the buffer that keeps it, in place.

    %3 = read acc
    %4 = matmul %1, %2, %3
    acc[:] = %4              →      acc += %1 @ %2

Where the product starts from something else than the buffer, that is written to the buffer first.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, result_of, touches_buffer, uses_of
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext


def accumulate_in_place(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with products that only a buffer keeps added to it in place."""
    return replace(kernel, body=_accumulating(kernel.body))


def _accumulating(body: Body) -> Body:
    out = [map_bodies(stmt, _accumulating) for stmt in body]
    for write in [s for s in out if isinstance(s, k.Write)]:
        at = next(n for n, s in enumerate(out) if s is write)
        made = next((n for n, s in enumerate(out) if isinstance(s, k.Compute) and s.result.id == write.value.id), None)
        product = None if made is None else out[made]
        if made is None or not isinstance(product, k.Compute) or not isinstance(find(product.op), Matmul):
            continue
        used = [value.id for stmt in out for value in uses_of(stmt)].count(product.result.id)
        if len(product.operands) != 3 or used != 1:
            continue
        lhs, rhs, start = product.operands
        if not (isinstance(lhs, k.Value) and isinstance(rhs, k.Value) and isinstance(start, k.Value)):
            continue
        ready = next((n + 1 for n, s in enumerate(out) if (r := result_of(s)) is not None and r.id == start.id), 0)
        if any(touches_buffer(stmt, write.buffer) for stmt in out[ready:at]):
            continue
        out[at] = k.Accumulate(write.buffer, lhs, rhs, product.attrs, write.span)
        del out[made]
        source = out[ready - 1] if ready else None
        if not (isinstance(source, k.Read) and source.buffer.id == write.buffer.id):
            out.insert(ready, k.Write(write.buffer, start, write.span))
    return tuple(out)
