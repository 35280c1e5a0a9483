"""Let a product start from nothing: what the user had it start from is added by whoever owns that.

    %3 = matmul %0, %1, %2       →      %4 = matmul %0, %1
                                        %3 = add %4, %2
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.values import fresh_ids


def part_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with products of two operands."""
    del context
    ids = fresh_ids(kernel)

    def parted(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if is_product(stmt) and isinstance(stmt, k.Compute) and len(stmt.operands) == 3:
                product = k.Value(next(ids), stmt.result.type)
                out.append(replace(stmt, result=product, operands=stmt.operands[:2]))
                stmt = k.Compute(stmt.result, add.name, (product, stmt.operands[2]), span=stmt.span)
            out.append(map_bodies(stmt, parted))
        return tuple(out)

    return replace(kernel, body=parted(kernel.body))


def verify_after_part_products(kernel: k.Kernel) -> None:
    """No product starts from a tile."""
    assert not any(is_product(stmt) and isinstance(stmt, k.Compute) and len(stmt.operands) == 3 for stmt in walk(kernel.body))


def is_product(stmt: k.Stmt) -> bool:
    """Tell whether a statement is a product of matrices that gives a value."""
    return isinstance(stmt, k.Compute) and isinstance(find(stmt.op), Matmul)
