"""Drop what nothing uses.

    %1 = mul %0, 2.0
    store y, %0              →      store y, %0

A guarded load stays: the run may end there.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, result_of, uses_of
from pto_wsp.plan.kernel.context import KernelContext


def drop_dead_code(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel without results that nothing uses."""
    return replace(kernel, body=_live(kernel.body))


def verify_after_drop_dead_code(kernel: k.Kernel) -> None:
    """Dropping dead code once more changes nothing."""
    assert kernel.body == _live(kernel.body)


def _live(body: Body) -> Body:
    out: list[k.Stmt] = []
    used: set[int] = set()
    for stmt in reversed(body):
        result = result_of(stmt)
        if result is not None and result.id not in used and not _may_fail(stmt):
            continue
        stmt = map_bodies(stmt, _live)
        if isinstance(stmt, k.If) and not stmt.then and not stmt.other:
            continue
        used.update(value.id for value in uses_of(stmt))
        out.append(stmt)
    return tuple(reversed(out))


def _may_fail(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Load) and stmt.guard is not None
