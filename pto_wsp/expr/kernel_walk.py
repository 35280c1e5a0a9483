"""Walking the statements of a kernel, and its run-time guards in the one order that every executor numbers them.

A guard stands at each load from, and each store to, a Tensor parameter: the piece that is moved must lie inside the region.

>>> [guard.what for guard in guards_of(kernel)]
['load x[row, 0]']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pto_wsp.expr.kernel import For, Kernel, Load, Stmt, Store, TensorParam
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """A piece of a Tensor parameter that must lie inside the region when it is moved.

    With (n_rows, n_cols) = `valid_of(stmt)` as it is at that point, the guard holds when n_rows or n_cols is 0 (nothing
    moves), or when 0 <= row, 0 <= col, row + n_rows <= rows of the region and col + n_cols <= its columns.
    """

    param: str
    what: str
    stmt: Load | Store
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield every statement in pre-order: a loop before its body."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For):
            yield from walk(stmt.body)


def guards_of(kernel: Kernel) -> tuple[Guard, ...]:
    """Return the guards in pre-order; a guard's number is its place in this tuple."""
    tensors = {p.name for p in kernel.params if isinstance(p, TensorParam)}
    return tuple(_guard(stmt) for stmt in walk(kernel.body) if isinstance(stmt, Load | Store) and stmt.param in tensors)


def _guard(stmt: Load | Store) -> Guard:
    verb = "load" if isinstance(stmt, Load) else "store"
    what = f"{verb} {stmt.param}[{s.print_scalar(stmt.row)}, {s.print_scalar(stmt.col)}]"
    return Guard(stmt.param, what, stmt, stmt.span)


def piece_of(stmt: Load | Store) -> tuple[int, int]:
    """Return rows and columns of the piece in memory: those of the value, exchanged for a transposed load."""
    if isinstance(stmt, Store):
        return stmt.value.type.shape
    rows, cols = stmt.result.type.shape
    return (cols, rows) if stmt.transpose else (rows, cols)


def valid_of(stmt: Load | Store) -> tuple[s.Scalar, s.Scalar]:
    """Return how many rows and columns of the piece are valid by the statement itself: what is given, cut to 0 .. the piece."""
    rows, cols = piece_of(stmt)
    return _cut(stmt.valid_rows, rows), _cut(stmt.valid_cols, cols)


def _cut(valid: s.Scalar | None, extent: int) -> s.Scalar:
    return s.Const(extent) if valid is None else s.minimum(s.maximum(valid, s.Const(0)), s.Const(extent))
