"""Let a product start from what is added to it.

    %2 = matmul %0, %1
    %4 = add %2, %3          →      %4 = matmul %0, %1, %3
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, uses_of
from pto_wsp.ops.entry import Operator
from pto_wsp.ops.spec import Elementwise, Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext


def fuse_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each sum of a tile and a product that nothing else uses as one product."""
    return replace(kernel, body=_fused(kernel.body))


def _fused(body: Body) -> Body:
    counts = Counter(value.id for stmt in body for value in uses_of(stmt))
    products = {s.result.id: s for s in body if isinstance(s, k.Compute) and isinstance(find(s.op), Matmul)
                and len(s.operands) == 2 and counts[s.result.id] == 1}
    out: list[k.Stmt] = []
    gone: set[int] = set()
    for stmt in body:
        stmt = map_bodies(stmt, _fused)
        if isinstance(stmt, k.Compute) and _is_addition(stmt):
            for product, other in (stmt.operands, stmt.operands[::-1]):
                if (isinstance(product, k.Value) and product.id in products and isinstance(other, k.Value)
                        and other.type == product.type):
                    matmul = products[product.id]
                    gone.add(product.id)
                    stmt = k.Compute(stmt.result, matmul.op, (*matmul.operands, other), matmul.attrs, stmt.span)
                    break
        out.append(stmt)
    return tuple(s for s in out if not (isinstance(s, k.Compute) and s.result.id in gone))


def _is_addition(stmt: k.Compute) -> bool:
    entry = find(stmt.op)
    return isinstance(entry, Elementwise) and entry.c == Operator("+")
