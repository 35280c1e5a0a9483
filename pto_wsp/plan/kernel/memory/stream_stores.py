"""Let long rows of outputs that need not stay in the caches go past them.

    columns 4096: store y, %3        →      columns 4096: store y, %3, past the caches

Such rows are computed block by block, and each block is written in whole cache lines. A loop that adds up in lanes has blocks of its
own and keeps its stores.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies
from pto_wsp.plan.kernel.context import KernelContext

BLOCK_BYTES = 1024     # measured: 0.5 to 1 KiB is best, 4 KiB as slow as plain stores


def stream_stores(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with the stores that go past the caches."""
    return replace(kernel, body=_streaming(kernel.body, context.streamed & context.unit_columns))


def _streaming(body: Body, params: frozenset[str]) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, lambda inner: _streaming(inner, params))
        if isinstance(stmt, k.Columns) and stmt.lanes == 1:
            stmt = replace(stmt, body=tuple(_streamed(inner, params) for inner in stmt.body))
        out.append(stmt)
    return tuple(out)


def _streamed(stmt: k.Stmt, params: frozenset[str]) -> k.Stmt:
    if not isinstance(stmt, k.Store) or stmt.param not in params:
        return stmt
    tile = stmt.value.type
    return replace(stmt, streams=tile.cols * tile.dtype.nbytes >= BLOCK_BYTES)
