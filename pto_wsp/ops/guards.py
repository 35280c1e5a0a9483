"""Number the run-time guards of a kernel.

Each load from and each store to a Tensor parameter has a guard: the moved piece must be inside the region. Each op with indices has
one: the indices must be inside the axis. So have a read of one element, and a write to a part of a buffer, whose row or column is known
only at run time.

>>> [guard.what for guard in guards_of(kernel)]
['load x[row, 0]']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pto_wsp.ir.kernel import Compute, Gather, Guarded, Item, Kernel, Load, Scatter, Store, TensorParam, Value, WritePart
from pto_wsp.ir.kernel_walk import verb_of, walk
from pto_wsp.ir.scalar import Const, print_scalar
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """A run-time check that a moved piece of a Tensor parameter is inside the region, or that indices are inside an axis.

    For a piece with (n_rows, n_cols) = `valid_of(stmt)` at that point, the guard holds if n_rows or n_cols is 0 (nothing moves), or if
    0 <= row, 0 <= col, row + n_rows <= the region's rows and col + n_cols <= its columns.

    `counts`: the indices take each column, counted from a scalar, as those by which a function on tensors checks that it has elements.
    """

    what: str
    stmt: Guarded
    counts: bool = False
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


def guards_of(kernel: Kernel) -> tuple[Guard, ...]:
    """Return the guards of a kernel as traced, in pre-order; the number of a guard is its index in this tuple."""
    tensors = {p.name for p in kernel.params if isinstance(p, TensorParam)}
    makers = {stmt.result.id: stmt for stmt in walk(kernel.body) if isinstance(stmt, Compute)}
    return tuple(_guard(stmt, makers) for stmt in walk(kernel.body)
                 if isinstance(stmt, Gather | Scatter) or (isinstance(stmt, Load | Store) and stmt.param in tensors)
                 or (isinstance(stmt, Compute) and takes_indices(stmt))
                 or (isinstance(stmt, Item | WritePart) and not (isinstance(stmt.row, Const) and isinstance(stmt.col, Const))))


def takes_indices(stmt: Compute) -> bool:
    """Tell whether an index out of bounds in this op fails the task."""
    entry = find(stmt.op)
    return isinstance(entry, TileFunction) and entry.may_fail(stmt.attrs)


def transposes(stmt: Compute) -> bool:
    """Tell whether an operation gives its operand with rows and columns exchanged."""
    entry = find(stmt.op)
    return isinstance(entry, Movement) and entry.transposes


def _guard(stmt: Guarded, makers: Mapping[int, Compute]) -> Guard:
    if isinstance(stmt, Gather | Scatter):
        return Guard(f"{verb_of(stmt)} of rows of {stmt.param}", stmt, span=stmt.span)
    if isinstance(stmt, WritePart):
        rows, cols = stmt.value.type.shape
        at = f"[{print_scalar(stmt.row)}, {print_scalar(stmt.col)}]"
        return Guard(f"a write of {rows} x {cols} elements to `{stmt.buffer.name}` at {at}", stmt, span=stmt.span)
    if isinstance(stmt, Item):
        return Guard(f"item [{print_scalar(stmt.row)}, {print_scalar(stmt.col)}] of {stmt.value.type!r}", stmt, span=stmt.span)
    if isinstance(stmt, Compute):
        axis = next(value for name, value in stmt.attrs if name == "axis")
        tile = next(o.type for o in stmt.operands if isinstance(o, Value))
        index = stmt.operands[1]
        every = axis == 1 and isinstance(index, Value) and index.type.cols == tile.cols      # fewer are a slice that starts at a scalar
        return Guard(f"{stmt.op} along axis {axis} of {tile!r}", stmt, every and _counts(index, makers), stmt.span)
    verb = "load" if isinstance(stmt, Load) else "store"
    what = f"{verb} {stmt.param}[{print_scalar(stmt.row)}, {print_scalar(stmt.col)}]"
    return Guard(what, stmt, span=stmt.span)


def _counts(index: object, makers: Mapping[int, Compute]) -> bool:
    """Tell whether indices are 0, 1, … behind a scalar."""
    maker = makers.get(index.id) if isinstance(index, Value) else None
    if maker is not None and maker.op == add.name:
        return _counts(next((one for one in maker.operands if isinstance(one, Value)), None), makers)
    return maker is not None and maker.op == "iota"
