"""Leave out rows that no task keeps.

    %2 = matmul %0, %1               %2 = matmul %0, %1, rows_of='out'
    rows 64:                         rows 64, those of out:
        columns 100: ...     →           columns 100: ...

Where a task binds an output with fewer rows than its tile has, rows behind them are computed for nothing. A loop over rows that only
fills such outputs ends with them, and writes in place; a product that only such a loop reads multiplies no more rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, piece_of, uses_of, valid_of, walk
from pto_wsp.ops.spec import ColReduce, Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.products.choose_products import ROWS_OF, Form
from pto_wsp.plan.kernel.values import leaving, use_counts
from pto_wsp.types.scalar import Const


def trim_rows(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with `of` at the loops over rows that end with an output, and `rows_of` at the products that do."""
    tiles = {p.name: p.type.rows for p in kernel.params if isinstance(p, k.TileParam) and p.name in context.ragged}
    if not tiles:
        return kernel
    uses = use_counts(kernel.body)

    def trimmed(body: Body) -> Body:
        return tuple(replace(stmt, of=_kept_by(stmt, tiles)) if isinstance(stmt, k.Rows) and not leaving(stmt.body, uses)
                     else map_bodies(stmt, trimmed) for stmt in body)

    body = trimmed(kernel.body)
    return replace(kernel, body=_products(body, _readers(body)))


def verify_after_trim_rows(kernel: k.Kernel) -> None:
    """A loop that ends with an output has no results but what it stores there."""
    uses = use_counts(kernel.body)
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.Rows) and stmt.of is not None:
            assert not leaving(stmt.body, uses), stmt
            assert all(inner.param == stmt.of for inner in walk(stmt.body) if isinstance(inner, k.Store)), stmt


def _kept_by(rows: k.Rows, tiles: Mapping[str, int]) -> str | None:
    """Return the output that alone the rows fill, row for row."""
    if rows.vector or rows.rows == 1:
        return None
    params: set[str] = set()
    for stmt in walk(rows.body):
        match stmt:
            case k.Store(param):
                whole = stmt.row == Const(0) and valid_of(stmt)[0] == Const(piece_of(stmt)[0])
                if not whole or tiles.get(param) != rows.rows:
                    return None
                params.add(param)
            case k.Write():
                return None
            case k.Compute(_, op) if isinstance(find(op), ColReduce):
                return None
            case _:
                pass
    return params.pop() if len(params) == 1 else None


def _readers(body: Body) -> dict[int, set[str | None]]:
    """Return with which outputs the loops end that read a value, by its id; None for all other readers."""
    found: dict[int, set[str | None]] = {}
    for stmt in body:
        if isinstance(stmt, k.For | k.If):
            for inner in (stmt.body,) if isinstance(stmt, k.For) else (stmt.then, stmt.other):
                for read, readers in _readers(inner).items():
                    found.setdefault(read, set()).update(readers)
            continue
        for value in uses_of(stmt):
            found.setdefault(value.id, set()).add(stmt.of if isinstance(stmt, k.Rows) else None)
    return found


def _products(body: Body, readers: Mapping[int, set[str | None]]) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, lambda inner: _products(inner, readers))
        if isinstance(stmt, k.Compute) and isinstance(find(stmt.op), Matmul) and len(stmt.operands) == 2:
            match [*readers.get(stmt.result.id, ())]:
                case [str(param)] if Form(dict(stmt.attrs)["form"]) is Form.BLOCKS:
                    stmt = replace(stmt, attrs=(*stmt.attrs, (ROWS_OF, param)))
        out.append(stmt)
    return tuple(out)
