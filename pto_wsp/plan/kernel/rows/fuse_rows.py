"""Put what handles rows one by one into one loop over rows.

    %1 = rowmax %0
    %2 = sub %0, %1              rows 16:
    %3 = exp %2                      %1 = rowmax %0
    store y, %3              →       %2 = sub %0, %1; %3 = exp %2; store y, %3

What needs whole tiles (a product, a transpose) stands between such loops. See regions.py for which loop a statement joins. A loop that
would hold too much is cut into several: a C compiler takes more than twice as long for one that is twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.entry import Function
from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.rows.regions import is_row_local, plan_body

MAX_WEIGHT = 256
_FUNCTION = 16             # a polynomial, and what goes with it


def fuse_rows(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with its row-by-row statements in `Rows`, and the loads marked that must be copied."""
    shared = frozenset(p.name for p in kernel.memory_params if p.role.writes and p.role.reads)
    return replace(kernel, body=_fused(kernel.body, shared))


def verify_after_fuse_rows(kernel: k.Kernel) -> None:
    """What handles rows one by one stands in `Rows`."""
    inside = {id(stmt) for rows in walk(kernel.body) if isinstance(rows, k.Rows) for stmt in rows.body}
    for stmt in walk(kernel.body):
        local = isinstance(stmt, k.Store | k.Write) or (isinstance(stmt, k.Compute) and is_row_local(stmt))
        assert not local or id(stmt) in inside, stmt


def _fused(body: Body, shared: frozenset[str]) -> Body:
    """`shared`: names of parameters that are both loaded and stored."""
    plan = plan_body(body, shared)
    out: list[k.Stmt] = []
    for step in plan.steps:
        out += [replace(stmt, copy=True) if isinstance(stmt, k.Load) and stmt.result.id in plan.copied else stmt
                for stmt in step.prepares]
        if step.whole is not None:
            out.append(map_bodies(step.whole, partial(_fused, shared=shared)))
        elif step.members:
            out += [k.Rows(step.rows, part) for part in _parts(step.members)]
    return tuple(out)


def _parts(members: Sequence[k.Stmt]) -> Iterator[Body]:
    """Yield members in order, as many at a time as one loop may hold. What one part makes and a later one uses is kept in memory."""
    part: list[k.Stmt] = []
    weight = 0
    for stmt in members:
        own = weight_of(stmt)
        if part and weight + own > MAX_WEIGHT:
            yield tuple(part)
            part, weight = [], 0
        part.append(stmt)
        weight += own
    yield tuple(part)


def weight_of(stmt: k.Stmt) -> int:
    """Return about how many operators the C of a member has."""
    entry = find(stmt.op) if isinstance(stmt, k.Compute) else None
    return _FUNCTION if isinstance(entry, Elementwise) and isinstance(entry.c, Function) else 1
