"""Take and write rows whose length only a run tells one by one: a task binds the row that an entry of the table names.

    moved = take(cache, table)                     cache of (b, n, 4)

    moved = empty((t, n, 4))                       a tile of rows that a table names has columns of a known number; one row may be cut
    for i in each(t): moved[i] = cache[table[i]]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, Element, Scalar, Var
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body, Item, Make, Operand, Put, Statement, TensorFunction, nested_loops
from pto_wsp.ir.view import Pick
from pto_wsp.ops.entries import elementwise
from pto_wsp.passes.tensor.axes import TAKE
from pto_wsp.passes.tensor.effects import fresh_ids


def with_rows_one_by_one(function: TensorFunction, is_read_by_kernels: Callable[[DType], bool]) -> Body:
    """Return the body of a function with a loop for each table of rows whose length is no number.

    `is_read_by_kernels`: kernels of the target read entries of a table of a dtype; else such a table that is a parameter has a loop.
    """
    return _Unrolling(function, is_read_by_kernels).body(function.body)


class _Unrolling:
    def __init__(self, function: TensorFunction, is_read_by_kernels: Callable[[DType], bool]) -> None:
        self._given = frozenset(param.array.id for param in function.params
                                if not (param.written or is_read_by_kernels(param.array.dtype)))
        self._ids = fresh_ids(function)
        self._names = Names()

    def body(self, body: Body) -> Body:
        items: list[Item] = []
        for item in body.items:
            if isinstance(item, flow.Do):
                items += self._leaf(item.leaf)
            else:
                items.append(flow.with_bodies(item, self.body))
        return replace(body, items=tuple(items))

    def _leaf(self, leaf: Statement) -> list[Item]:
        match leaf:
            case Apply(op, (ArrayView() as source, ArrayView() as table), (result,)) if op == TAKE and self._has_loop(source, table):
                entries, before = self._entries(table, leaf)
                loops, index = self._loops(entries)
                target = ArrayView(result).then(*(Pick(0, var) for var, _ in loops))
                row: Body = flow.Sequence((flow.Do(Put(target, source.then(Pick(0, Element(entries.ref, index))), span=leaf.span)),))
                return [*before, flow.Do(Make(result, None, leaf.span)), *nested_loops(loops, row, leaf.span).items]
            case Put(target, value, ArrayView() as table) if self._has_loop(target, table):
                entries, before = self._entries(table, leaf)
                loops, index = self._loops(entries)
                place = target.then(Pick(0, Element(entries.ref, index)))
                n_left = len(value.shape) - len(target.shape) + 1 if isinstance(value, ArrayView) else 0      # what it has of the table's
                row_value: Operand = value
                if isinstance(value, ArrayView):
                    for var, extent in loops[max(0, len(loops) - n_left):]:
                        along = Const(0) if isinstance(row_value, ArrayView) and row_value.shape[0] == Const(1) != extent else var
                        assert isinstance(row_value, ArrayView)
                        row_value = row_value.then(Pick(0, along))
                put: list[Item] = []
                if leaf.add:
                    total = Array(next(self._ids), self._names.take(f"{target.array.name}.row"), place.shape, target.dtype)
                    put.append(flow.Do(Apply(elementwise.add.name, (place, row_value), (total,), span=leaf.span)))
                    row_value = ArrayView(total)
                put.append(flow.Do(Put(place, row_value, span=leaf.span)))
                apart = not leaf.add and Contract.INJECTIVE in table.array.contracts and not table.steps and len(loops) == 1
                return [*before, *nested_loops(loops, flow.Sequence(tuple(put)), leaf.span, not apart).items]
            case _:
                return [flow.Do(leaf)]

    def _has_loop(self, rows: ArrayView, table: ArrayView) -> bool:
        return _has_unknown_columns(rows) or (table.array.id in self._given and not table.steps)

    def _entries(self, table: ArrayView, leaf: Statement) -> tuple[Array, list[Item]]:
        """Return an array of the entries of a table, and the items that make the array."""
        if not table.steps:
            return table.array, []
        copy = Array(next(self._ids), self._names.take(f"{table.array.name}.entries"), table.shape, table.dtype)
        return copy, [flow.Do(Make(copy, None, leaf.span)), flow.Do(Put(ArrayView(copy), table, span=leaf.span))]

    def _loops(self, entries: Array) -> tuple[list[tuple[Var, Scalar]], tuple[Scalar, ...]]:
        """Return a loop variable for each dimension of the entries, with the extent, and the index that the variables are."""
        loops = [(Var(f"{entries.name}_{k}", next(self._ids)), extent) for k, extent in enumerate(entries.shape)]
        return loops, tuple(var for var, _ in loops)


def _has_unknown_columns(rows: ArrayView) -> bool:
    return any(not isinstance(extent, Const) for extent in rows.shape[1:])
