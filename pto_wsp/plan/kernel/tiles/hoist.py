"""Compute before a loop what every turn of it would compute again.

    for i in range(0, n, 1):                 %1 = transpose %0
        %1 = transpose %0                    for i in range(0, n, 1):
        %2 = load x[i * 8, 0]        →           %2 = load x[i * 8, 0]
        %3 = matmul %1, %2                       %3 = matmul %1, %2

Only what costs more than reading it back: ops on whole tiles, functions, divisions, and what they are made from. Guarded
statements stay, for the loop may not run. Nothing leaves a branch.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, buffers_written, map_bodies, result_of, stores, uses_of, walk
from pto_wsp.ops.spec import Elementwise, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.rows.regions import is_row_local
from pto_wsp.types.scalar import Scalar, Var, leaves


def hoist_invariants(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with costly results that no turn of a loop changes computed before it."""
    return replace(kernel, body=_hoisted(kernel.body))


def _hoisted(body: Body) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, _hoisted)
        if isinstance(stmt, k.For):
            moved = _invariant(stmt)
            out += [inner for inner in stmt.body if id(inner) in moved]
            stmt = replace(stmt, body=tuple(inner for inner in stmt.body if id(inner) not in moved))
        out.append(stmt)
    return tuple(out)


def _invariant(loop: k.For) -> frozenset[int]:
    """Return the id() of each statement of the loop's body that is worth moving before it, and may be."""
    made = {result.id for stmt in walk(loop.body) if (result := result_of(stmt)) is not None}
    stored, written = stores(loop), buffers_written(loop)
    same: dict[int, k.Stmt] = {}        # the same in every turn, by result
    for stmt in loop.body:
        result = result_of(stmt)
        if result is None or any(value.id in made and value.id not in same for value in uses_of(stmt)):
            continue
        match stmt:
            case k.Compute(_, _, operands):
                fixed = stmt.guard is None and not _follows(loop.var, *(o.value for o in operands if isinstance(o, k.ScalarOperand)))
            case k.Load():
                fixed = stmt.guard is None and not stored and not _follows(loop.var, stmt.row, stmt.col, stmt.valid_rows, stmt.valid_cols)
            case k.Read():
                fixed = stmt.buffer.id not in written
            case _:
                fixed = False
        if fixed:
            same[result.id] = stmt
    moved: set[int] = set()
    for stmt in reversed(loop.body):    # uses before what they use
        result = result_of(stmt)
        if result is not None and result.id in same and (id(stmt) in moved or _is_costly(stmt)):
            moved.add(id(stmt))
            moved.update(id(same[value.id]) for value in uses_of(stmt) if value.id in same)
    return frozenset(moved)


def _follows(var: Var, *nodes: Scalar | None) -> bool:
    return any(var in leaves(node) for node in nodes if node is not None)


def _is_costly(stmt: k.Stmt) -> bool:
    if not isinstance(stmt, k.Compute):
        return False
    entry = find(stmt.op)
    if isinstance(entry, Elementwise):
        return not entry.c.simple
    return isinstance(entry, RowReduce) or not is_row_local(stmt)
