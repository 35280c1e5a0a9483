"""Which values need only the rows that a kernel's outputs have: where these are known at run time, no more are computed.

    %0 = load x, 16 rows at most          the outputs have n rows: a load of n rows fills nothing,
    %1 = relu %0                          and every instruction handles n rows
    store y, %1                           a column sum in between would need all 16, zeros behind the n
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, uses_of, walk
from pto_wsp.ops.spec import Cast, Elementwise, Expand, RowReduce
from pto_wsp.ops.table import find


def whole_values(kernel: k.Kernel) -> tuple[frozenset[int], frozenset[int]]:
    """Return the ids of values, and of buffers, of which all rows are needed, though outputs have fewer."""
    values: set[int] = set()
    buffers: set[int] = set()
    statements = tuple(_backwards(kernel.body))
    grown = True
    while grown:      # what a loop's next turn reads is needed of what this turn writes
        before = len(values) + len(buffers)
        for stmt in statements:
            _need(stmt, values, buffers)
        grown = len(values) + len(buffers) > before
    return frozenset(values), frozenset(buffers)


def _backwards(body: Body) -> Iterator[k.Stmt]:
    yield from reversed(tuple(walk(body)))


def _need(stmt: k.Stmt, values: set[int], buffers: set[int]) -> None:
    """Add what a statement needs whole of what it reads."""
    match stmt:
        case k.Read(result, buffer):
            if result.id in values:
                buffers.add(buffer.id)
        case k.Write(buffer, value):
            if buffer.id in buffers:
                values.add(value.id)
        case k.Store():
            pass
        case k.Compute() if keeps_rows(stmt):
            if stmt.result.id in values:
                values.update(value.id for value in uses_of(stmt))
            values.update(value.id for value in uses_of(stmt) if value.type.rows != stmt.result.type.rows)
        case _ if not bodies_of(stmt):
            values.update(value.id for value in uses_of(stmt))
        case _:
            pass


def keeps_rows(stmt: k.Compute) -> bool:
    """Tell whether each row of the result comes from the same row of the operands, or from one that repeats."""
    return isinstance(find(stmt.op), Elementwise | RowReduce | Cast | Expand)
