"""What the tensors of a sparse axis must hold, looked at before every run: their arrays may have changed in place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pto_wsp.errors import BindingError, PtoError, raise_all
from pto_wsp.plan.model import BoundAxis, TaskPlan
from pto_wsp.runtime.bound.binding import Array, Bindings
from pto_wsp.types.scalar import Const, SymbolRef


def check_axes(plan: TaskPlan, bindings: Bindings) -> None:
    """Raise R102 for sparse axes whose arrays are no rows of ascending columns; tensors that tasks write are left to the run's guards."""
    errors: list[PtoError] = []
    for axis in plan.axes:
        if axis.sparse and None not in axis.slots:
            slots = [slot for slot in axis.slots if slot is not None]
            if not any(plan.tensors[slot].writes for slot in slots):
                names = tuple(plan.tensors[slot].ref.shown for slot in slots)
                arrays = tuple(bindings.arrays[slot] for slot in slots)
                errors.extend(_problems(axis, names, arrays, _rows(plan, axis, bindings)))
    raise_all(errors)


def _rows(plan: TaskPlan, axis: BoundAxis, bindings: Bindings) -> int | None:
    match axis.rows:
        case Const(value):
            return int(value)
        case SymbolRef(_, id):
            return next((int(value) for symbol, value in zip(plan.symbols, bindings.symbols, strict=True) if symbol.id == id), None)
        case _:
            return None      # an expression of other scalars: the loop's guards see where it ends


def _problems(axis: BoundAxis, names: tuple[str, ...], arrays: tuple[Array, ...], rows: int | None) -> Iterator[PtoError]:
    """Yield the first thing that is wrong with an axis."""
    (indptr_name, indices_name), (indptr, indices) = names, (arrays[0].astype(np.int64), arrays[1])
    called = f"axis `{axis.name}`" if axis.name else "a sparse axis"
    if rows is not None and len(indptr) != rows + 1:
        yield BindingError(f"{called}: `{indptr_name}` has one entry a row and one behind the last", expected=f"{rows + 1} entries",
                           found=str(len(indptr)))
        return
    falls = np.flatnonzero(np.diff(indptr) < 0)
    if len(falls):
        at = int(falls[0])
        yield BindingError(f"{called}: `{indptr_name}` falls", expected=f"{indptr_name}[{at + 1}] >= {indptr[at]}",
                           found=str(indptr[at + 1]))
    elif len(indptr) and (indptr[0] < 0 or indptr[-1] > len(indices)):
        yield BindingError(f"{called}: `{indptr_name}` points outside `{indices_name}`", expected=f"0 .. {len(indices)}",
                           found=f"{indptr[0]} .. {indptr[-1]}")
    elif len(indptr):
        yield from _columns_problem(called, indices_name, indptr, indices[indptr[0]:indptr[-1]])


def _columns_problem(called: str, name: str, indptr: Array, columns: Array) -> Iterator[PtoError]:
    first = int(indptr[0])
    if len(columns) and columns.min() < 0:
        yield BindingError(f"{called}: `{name}` holds a column below 0", found=f"{name}[{first + int(columns.argmin())}] = {columns.min()}")
        return
    rising = columns[1:] > columns[:-1]
    starts = indptr[1:-1] - first
    inner = starts[(starts > 0) & (starts < len(columns))]
    rising[inner - 1] = True             # from one row to the next a column may be anything
    wrong = np.flatnonzero(~rising)
    if len(wrong):
        at = int(wrong[0]) + 1 + first
        row = int(np.searchsorted(indptr, at, "right")) - 1
        before, column = int(columns[wrong[0]]), int(columns[wrong[0] + 1])
        yield BindingError(f"{called}: the columns of a row do not ascend" if column != before else f"{called}: a row has a column twice",
                           expected=f"{name}[{at}] > {before}", found=f"{column}, in row {row}",
                           help="sort the columns of each row, and their values with them")
