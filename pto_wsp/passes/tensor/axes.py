"""Find the axes of a group of statements: classes of dimensions that have one extent and are cut together, and what operations ask of each.

Dimensions of operands and results that an operation runs along together belong to one axis: of `normed = x / root * g` the rows of `x`,
`root` and `normed`. In each operation an axis is *free* (any tile of it gives that tile of the result), *summed* (a tile gives a part of
the result), or *whole* (sort, a constant slice: no tile of it means anything alone).

    score = qh @ k.T          axes: s (free), n (free), d (summed)
    peak = rowmax(score)      n is summed as well
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const, Scalar
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Insert, Item, Make, Put, Refold, Show, Statement, limit_of
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.flatten import may_be_given, split_into

Dim: TypeAlias = int                          # a dimension of a value of the group, counted as the statements name them
Dims: TypeAlias = tuple[Dim | None, ...]      # None: of extent 1


class AxisRole(Enum):
    """What an operation asks of an axis."""

    FREE = "free"
    SUMMED = "summed"
    WHOLE = "whole"


class Crooked(Exception):
    """A group reads a part of a value that it computes itself, of which a task has only a tile: the part is read from memory instead."""


def statements_of(items: Iterable[Item]) -> Iterator[Statement]:
    """Yield the statements of items, in program order."""
    for item in items:
        if isinstance(item, flow.Do):
            yield item.leaf
        else:
            yield from flow.leaves(item)


def _is_one(extent: Scalar) -> bool:
    return isinstance(extent, Const) and extent.value == 1


class Axes:
    """The axes of a group of statements. `local`: the arrays that exist in its kernel alone.

    `start`: the axes of a group whose statements stand first among these. What these say of dimensions is taken over, if no axes of
    that group turn out to be one.
    `every`: the axes that tasks may be cut along, in the order in which the statements name them. `turned`: one axis is two dimensions of
    a value, as in `n[:, None] < n`: its tiles would be blocks on the diagonal only. `extends`: the axes of `start` are as they were.
    """

    def __init__(self, statements: Sequence[Statement], local: frozenset[int], start: Axes | None = None) -> None:
        self.local = local
        self._n_statements = len(statements)
        # by dimension: an older dimension of the same axis, or itself; what is said of the axis is said of its oldest dimension
        self._parent: list[Dim] = [] if start is None else start._parent.copy()
        self._roles: list[frozenset[AxisRole]] = [] if start is None else start._roles.copy()
        self._extents: list[Scalar] = [] if start is None else start._extents.copy()
        self._dims_of: dict[object, Dims] = {} if start is None else start._dims_of.copy()
        # by the Python id of a view or array, which is kept alive beside
        self._named: dict[int, tuple[ArrayView | Array, Dims]] = {} if start is None else start._named.copy()
        self._n_old = len(self._parent)
        self._joins_old = False
        added = statements[0 if start is None else start._n_statements:]
        for statement in added:
            self._relate(statement)
        keep = self.extends = start is not None and not self._joins_old
        self._found: dict[int, tuple[ArrayView | Array, Dims]] = start._found.copy() if start is not None and keep else {}
        self._order: dict[Dim | None, None] = start._order.copy() if start is not None and keep else {}
        self._by_tables: set[Dim | None] = start._by_tables.copy() if start is not None and keep else set()
        self.turned = False
        for statement in added if keep else statements:
            self._list(statement)
        self.every: tuple[Dim, ...] = tuple([axis for axis in self._order if axis not in self._by_tables and axis is not None])

    # -- questions -----------------------------------------------------------------------------------------------------
    @property
    def values(self) -> Collection[tuple[ArrayView | Array, Dims]]:
        """The views and arrays of the statements, each with the axes of its dimensions."""
        return self._found.values()

    def of_array(self, array: Array) -> Dims:
        """Return the axis of each dimension of an array that the group defines; None where the extent is 1."""
        return self._of(array)

    def of_view(self, view: ArrayView) -> Dims:
        """Return the axis of each dimension of a view; None where the extent is 1."""
        return self._of(view)

    def of_written(self, put: Put) -> Dims:
        """Return the axes that a `Put` writes along: through a table, those of the table in place of the first dimension."""
        target = self._of(put.target)
        return target if put.table is None else (*self._of(put.table), *target[1:])

    def extent(self, axis: Dim) -> Scalar:
        """Return the extent of an axis, that of a dimension which says the most about it."""
        return self._extents[axis]

    def roles(self, axis: Dim) -> frozenset[AxisRole]:
        """Return the roles that the operations of the group give to an axis; empty for a free axis."""
        return self._roles[axis]

    def axis(self, dim: Dim) -> Dim:
        """Return the axis that a dimension belongs to: its oldest dimension."""
        parents = self._parent
        while (above := parents[dim]) != dim:
            dim = above
        return dim

    def _of(self, value: ArrayView | Array) -> Dims:
        known = self._found.get(id(value))
        if known is None:
            axes = tuple([None if dim is None else self.axis(dim) for dim in self._dims(value)])
            known = self._found[id(value)] = value, axes
        return known[1]

    def _list(self, statement: Statement) -> None:
        """Note the axes of a statement."""
        views, defined = list(map(self._of, statement.views)), list(map(self._of, statement.defines))
        read = views[:len(statement.reads)]
        if isinstance(statement, Put):
            read.append(self.of_written(statement))
            if statement.table is not None:
                self._by_tables.update(self._of(statement.target)[:1])
        elif isinstance(statement, Apply) and statement.op == TAKE:
            self._by_tables.update(read[0][:1])
        for axes in (*read, *defined):
            for axis in axes:
                self._order[axis] = None
        for axes in (*views, *defined):
            if len(set(axes)) < len(axes) - max(0, axes.count(None) - 1):
                self.turned = True

    # -- relations -----------------------------------------------------------------------------------------------------
    def _new_dim(self, extent: Scalar) -> Dim | None:
        if _is_one(extent):
            return None
        self._parent.append(len(self._parent))
        self._roles.append(frozenset())
        self._extents.append(extent)
        return len(self._parent) - 1

    def _dims(self, value: ArrayView | Array) -> Dims:
        """Return the dimensions of a view: those of the array, if the group computes the array and the view keeps it whole."""
        known = self._named.get(id(value))
        if known is None:
            key: object = value.array if isinstance(value, ArrayView) and not value.steps and value.array.id in self.local else value
            dims = self._dims_of.get(key)
            if dims is None:
                dims = self._dims_of[key] = self._new_dims(key) if isinstance(key, ArrayView) else tuple(map(self._new_dim, value.shape))
            known = self._named[id(value)] = value, dims
        return known[1]

    def _new_dims(self, view: ArrayView) -> Dims:
        if view.array.id not in self.local:
            named = tuple(map(self._new_dim, view.shape))
            for k in _behind_a_split(view):
                self._ask(named[k], AxisRole.WHOLE)
            return named
        dims = list(self._dims(view.array))
        for step in view.steps:
            match step:
                case Pick(dim, Const()):
                    self._ask(dims.pop(dim), AxisRole.WHOLE)
                case Insert(dim):
                    dims.insert(dim, None)
                case Permute(order):
                    dims = [dims[k] for k in order]
                case Cut(dim, Const() as start, Const() as stop, by):
                    self._ask(dims[dim], AxisRole.WHOLE)
                    part = ("part", view.array.id if dims[dim] is None else dims[dim], dim, start, stop, by)
                    if part not in self._dims_of:
                        self._dims_of[part] = (self._new_dim(Const(len(range(int(start.value), int(stop.value), by)))),)
                    (dims[dim],) = self._dims_of[part]
                    self._ask(dims[dim], AxisRole.WHOLE)
                case _:
                    raise Crooked
        return tuple(dims)

    def _ask(self, dim: Dim | None, role: AxisRole) -> None:
        if dim is not None:
            axis = self.axis(dim)
            self._roles[axis] |= {role}

    def _join(self, one: Dim | None, other: Dim | None) -> None:
        """Make the axes of two dimensions one: that with the older dimension."""
        if one is None or other is None:
            return
        first, second = self.axis(one), self.axis(other)
        if first != second:
            axis, gone = (first, second) if first < second else (second, first)
            self._extents[axis] = self._extents[second if limit_of(self._extents[first]) is None else first]
            self._roles[axis] |= self._roles[gone]
            self._parent[gone] = axis
            self._joins_old = self._joins_old or gone < self._n_old

    def _along(self, one: ArrayView | Array, other: ArrayView | Array, skip: int = 0, skip_other: int = 0) -> None:
        """Join dimensions from the last backwards, without the last `skip` and `skip_other`: they broadcast."""
        left, right = self._dims(one), self._dims(other)
        for k in range(1, 1 + min(len(left) - skip, len(right) - skip_other)):
            self._join(left[-k - skip], right[-k - skip_other])

    def _ask_of(self, value: ArrayView | Array, dim: int, role: AxisRole) -> None:
        self._ask(self._dims(value)[dim], role)

    def _relate(self, statement: Statement) -> None:
        match statement:
            case Apply():
                self._relate_op(statement, [operand for operand in statement.operands if isinstance(operand, ArrayView)])
            case Put(target, value, None):
                if isinstance(value, ArrayView):
                    self._along(target, value)
                else:
                    self._dims(target)
            case Put(target, value, table):
                assert table is not None
                inside = target.shape[1:]
                if isinstance(value, ArrayView) and len(value.shape) > len(inside):
                    rank = len(table.shape)
                    self._along(table, value, 0, len(inside))
                    assert len(value.shape) == rank + len(inside)
                if isinstance(value, ArrayView) and inside:
                    for dim, other in zip(self._dims(target)[1:], self._dims(value)[-len(inside):], strict=False):
                        self._join(dim, other)
                self._ask_of(target, 0, AxisRole.WHOLE)
            case Make(array):
                self._dims(array)
            case Show(_, value):
                self._dims(value)

    def _relate_op(self, statement: Apply, views: list[ArrayView]) -> None:
        result = statement.results[0]
        entry = TABLE.get(statement.op)
        if statement.op == TAKE:
            source, table = views
            self._along(table, result, 0, len(source.shape) - 1)
            for dim, other in zip(self._dims(source)[1:], self._dims(result)[len(table.shape):], strict=True):
                self._join(dim, other)
            self._ask_of(source, 0, AxisRole.WHOLE)
        elif isinstance(entry, Elementwise | Convert | Expand) or (entry is None and not views):
            for view in views:
                self._along(result, view)
        elif isinstance(entry, RowReduce):
            self._along(result, views[0], 1, 1)
            self._ask_of(views[0], -1, AxisRole.SUMMED)
        elif isinstance(entry, ColReduce):
            self._along(result, views[0], 2, 2)
            self._join(self._dims(result)[-1], self._dims(views[0])[-1])
            self._ask_of(views[0], -2, AxisRole.SUMMED)
        elif isinstance(entry, Matmul):
            lhs, rhs = views[:2]
            for view in views:
                self._along(result, view, 2, 2)
            m, inner = self._dims(lhs)[-2:]
            inner_again, n = self._dims(rhs)[-2:]
            self._join(self._dims(result)[-2], m)
            self._join(self._dims(result)[-1], n)
            self._join(inner, inner_again)
            self._ask(inner, AxisRole.SUMMED)
        elif statement.op == ROWS_OF:
            everything: tuple[ArrayView | Array, ...] = (*views, *statement.results)
            for value in everything:
                for k in range(len(self._dims(value))):
                    self._ask_of(value, k, AxisRole.WHOLE)
        else:      # an op that needs its last dimension whole
            for made in statement.results:
                if made.rank:
                    self._ask_of(made, -1, AxisRole.WHOLE)
            for view in views:
                if view.shape:
                    self._ask_of(view, -1, AxisRole.WHOLE)
                self._along(result, view, 1, 1)


def _behind_a_split(view: ArrayView) -> list[int]:
    """Return the dimensions of a view that are inner parts of a dimension of memory, which has an extent that is a symbol: a tile has
    all of them, so that it lies in memory in one piece.
    """
    place = max((at for at, step in enumerate(view.steps) if isinstance(step, Refold)), default=None)
    if place is None:
        return []
    refold = view.steps[place]
    assert isinstance(refold, Refold)
    if may_be_given(refold.shape, view.array.shape) or (groups := split_into(refold.shape, view.array.shape)) is None:
        return []
    inner = {at for group in groups for at in group[1:] if isinstance(refold.shape[at], Const)}
    dims = list(range(len(refold.shape)))
    for step in view.steps[place + 1:]:
        match step:
            case Pick(dim):
                del dims[dim]
            case Insert(dim):
                dims.insert(dim, -1)
            case Permute(order):
                dims = [dims[k] for k in order]
            case _:
                pass
    return [k for k, dim in enumerate(dims) if dim in inner]


# the operations that no kernel has, by name
TAKE, ROWS_OF, RANDOM, ARANGE = "take", "rows_of", "random", "arange"


def defined_by(items: Iterable[Item]) -> dict[int, Array]:
    """Return the arrays that items make or compute, by id."""
    return {array.id: array for statement in statements_of(items) for array in statement.defines}
