"""Find the axes of a group of statements: classes of dimensions that have one extent and are cut together, and what operations ask of each.

Dimensions of operands and results that an operation runs along together belong to one axis: of `normed = x / root * g` the rows of `x`,
`root` and `normed`. In each operation an axis is *free* (any tile of it gives that tile of the result), *summed* (a tile gives a part of
the result), or *whole* (sort, a constant slice: no tile of it means anything alone).

    score = qh @ k.T          axes: s (free), n (free), d (summed)
    peak = rowmax(score)      n is summed as well
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const, Scalar
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Insert, Item, Make, Put, Refold, Show, Statement, limit_of
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.ops.whole import Movement
from pto_wsp.passes.tensor.flatten import may_be_given, split_into

Dim: TypeAlias = tuple[object, ...]     # a dimension: ("array", id, k) of an array of the group, ("view", n, k) of the n-th view it reads


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
        yield from flow.leaves(item)


def _is_one(extent: Scalar) -> bool:
    return isinstance(extent, Const) and extent.value == 1


class Axes:
    """The axes of a group of statements. `local`: the arrays that exist in its kernel alone.

    `start`: the axes of a group whose statements stand first among these. What these say of dimensions is taken over.
    """

    def __init__(self, statements: Sequence[Statement], local: frozenset[int], start: Axes | None = None) -> None:
        self.local = local
        self._n_statements = len(statements)
        self._parent: dict[Dim, Dim] = {} if start is None else dict(start._parent)
        self._roles: dict[Dim, set[AxisRole]] = {} if start is None else {axis: set(roles) for axis, roles in start._roles.items()}
        self._extents: dict[Dim, Scalar] = {} if start is None else dict(start._extents)
        self._numbers: dict[ArrayView, int] = {} if start is None else dict(start._numbers)     # a number is compared faster than a view
        # by the Python id of a view, which is kept alive beside
        self._dims_of: dict[int, tuple[ArrayView, list[Dim]]] = {} if start is None else dict(start._dims_of)
        self._joined = False
        self._found: dict[int, tuple[ArrayView | Array, tuple[Dim | None, ...]]] = {}      # likewise, once all dimensions are joined
        for statement in statements[0 if start is None else start._n_statements:]:
            self._relate(statement)
        self._joined = True

    # -- questions -----------------------------------------------------------------------------------------------------
    def of_array(self, array: Array) -> tuple[Dim | None, ...]:
        """Return the axis of each dimension of an array that the group defines; None where the extent is 1."""
        known = self._found.get(id(array))
        if known is not None:
            return known[1]
        axes = tuple([None if _is_one(extent) else self.axis(("array", array.id, k), extent) for k, extent in enumerate(array.shape)])
        if self._joined:
            self._found[id(array)] = array, axes
        return axes

    def of_view(self, view: ArrayView) -> tuple[Dim | None, ...]:
        """Return the axis of each dimension of a view; None where the extent is 1."""
        known = self._found.get(id(view))
        if known is not None:
            return known[1]
        axes = tuple([None if _is_one(extent) else self.axis(dim, extent)
                      for dim, extent in zip(self._dims(view), view.shape, strict=True)])
        if self._joined:
            self._found[id(view)] = view, axes
        return axes

    def axis(self, dim: Dim, extent: Scalar) -> Dim:
        """Return the axis that a dimension belongs to."""
        parents = self._parent
        root = above = parents.setdefault(dim, dim)
        while (above := parents[root]) is not root and above != root:
            root = above
        while (above := parents[dim]) is not root and above != root:
            parents[dim], dim = root, above
        known = self._extents.get(root)
        if known is None or (not isinstance(known, Const) and limit_of(known) is None):
            self._extents[root] = extent if known is None or limit_of(extent) is not None else known
        return root

    def extent(self, axis: Dim) -> Scalar:
        """Return the extent of an axis, that of a dimension which says the most about it."""
        return self._extents[axis]

    def roles(self, axis: Dim) -> frozenset[AxisRole]:
        """Return the roles that the operations of the group give to an axis; empty for a free axis."""
        return frozenset(self._roles.get(axis, ()))

    # -- relations -----------------------------------------------------------------------------------------------------
    def _dims(self, view: ArrayView) -> list[Dim]:
        """Return a name for each dimension of a view: that of the array's, if the group computes the array and the view keeps it whole."""
        known = self._dims_of.get(id(view))
        if known is None:
            known = self._dims_of[id(view)] = view, self._new_dims(view)
        return known[1]

    def _new_dims(self, view: ArrayView) -> list[Dim]:
        if view.array.id not in self.local:
            number = self._numbers.setdefault(view, len(self._numbers))
            named: list[Dim] = [("view", number, k) for k in range(len(view.shape))]
            for k in _behind_a_split(view):
                self._ask(named[k], view.shape[k], AxisRole.WHOLE)
            return named
        dims: list[Dim] = [("array", view.array.id, k) for k in range(view.array.rank)]
        shape = list(view.array.shape)
        for step in view.steps:
            match step:
                case Pick(dim, Const()):
                    if not _is_one(shape[dim]):
                        self._ask(dims[dim], shape[dim], AxisRole.WHOLE)
                    del dims[dim], shape[dim]
                case Insert(dim):
                    dims.insert(dim, ("one",))
                    shape.insert(dim, Const(1))
                case Permute(order):
                    dims, shape = [dims[k] for k in order], [shape[k] for k in order]
                case Cut(dim, Const() as start, Const() as stop, by):
                    self._ask(dims[dim], shape[dim], AxisRole.WHOLE)
                    dims[dim] = ("part", dims[dim], start, stop, by)
                    shape[dim] = Const(len(range(int(start.value), int(stop.value), by)))
                    self._ask(dims[dim], shape[dim], AxisRole.WHOLE)
                case _:
                    raise Crooked
        return dims

    def _ask(self, dim: Dim, extent: Scalar, role: AxisRole) -> None:
        if not _is_one(extent):
            self._roles.setdefault(self.axis(dim, extent), set()).add(role)

    def _join(self, one: Dim, extent: Scalar, other: Dim, other_extent: Scalar) -> None:
        if _is_one(extent) or _is_one(other_extent):
            return
        first, second = self.axis(one, extent), self.axis(other, other_extent)
        if first != second:
            self._parent[second] = first
            self._roles.setdefault(first, set()).update(self._roles.pop(second, ()))
            known = self._extents.pop(second)
            if limit_of(self._extents[first]) is None:
                self._extents[first] = known

    def _along(self, one: ArrayView | Array, other: ArrayView | Array, skip: int = 0, skip_other: int = 0) -> None:
        """Join dimensions from the last backwards, without the last `skip` and `skip_other`: they broadcast."""
        left, right = self._named(one), self._named(other)
        pairs = zip(reversed(left[:len(left) - skip]), reversed(right[:len(right) - skip_other]), strict=False)
        for (dim, extent), (dim_other, extent_other) in pairs:
            self._join(dim, extent, dim_other, extent_other)

    def _named(self, value: ArrayView | Array) -> list[tuple[Dim, Scalar]]:
        if isinstance(value, Array):
            return [(("array", value.id, k), extent) for k, extent in enumerate(value.shape)]
        return list(zip(self._dims(value), value.shape, strict=True))

    def _ask_of(self, value: ArrayView | Array, dim: int, role: AxisRole) -> None:
        name, extent = self._named(value)[dim]
        self._ask(name, extent, role)

    def _relate(self, statement: Statement) -> None:
        match statement:
            case Apply():
                self._relate_op(statement, [operand for operand in statement.operands if isinstance(operand, ArrayView)])
            case Put(target, value, None):
                if isinstance(value, ArrayView):
                    self._along(target, value)
                else:
                    self._named(target)
            case Put(target, value, table):
                assert table is not None
                inside = target.shape[1:]
                if isinstance(value, ArrayView) and len(value.shape) > len(inside):
                    rank = len(table.shape)
                    self._along(table, value, 0, len(inside))
                    assert len(value.shape) == rank + len(inside)
                if isinstance(value, ArrayView) and inside:
                    for (dim, extent), (other, other_extent) in zip(self._named(target)[1:], self._named(value)[-len(inside):],
                                                                    strict=False):
                        self._join(dim, extent, other, other_extent)
                self._ask_of(target, 0, AxisRole.WHOLE)
            case Make(array):
                self._named(array)
            case Show(_, value):
                self._named(value)

    def _relate_op(self, statement: Apply, views: list[ArrayView]) -> None:
        result = statement.results[0]
        entry = TABLE.get(statement.op)
        if statement.op == TAKE:
            source, table = views
            self._along(table, ArrayView(result), 0, len(source.shape) - 1)
            for (dim, extent), (other, other_extent) in zip(self._named(source)[1:], self._named(result)[len(table.shape):], strict=True):
                self._join(dim, extent, other, other_extent)
            self._ask_of(source, 0, AxisRole.WHOLE)
        elif isinstance(entry, Elementwise | Convert | Expand) or (entry is None and not views):
            for view in views:
                self._along(result, view)
        elif isinstance(entry, RowReduce):
            self._along(result, views[0], 1, 1)
            self._ask_of(views[0], -1, AxisRole.SUMMED)
        elif isinstance(entry, ColReduce):
            self._along(result, views[0], 2, 2)
            self._join(*self._named(result)[-1], *self._named(views[0])[-1])
            self._ask_of(views[0], -2, AxisRole.SUMMED)
        elif isinstance(entry, Matmul):
            lhs, rhs = views[:2]
            for view in views:
                self._along(result, view, 2, 2)
            m, inner = self._named(lhs)[-2:]
            inner_again, n = self._named(rhs)[-2:]
            self._join(*self._named(result)[-2], *m)
            self._join(*self._named(result)[-1], *n)
            self._join(*inner, *inner_again)
            self._ask(*inner, AxisRole.SUMMED)
        elif isinstance(entry, Movement) and entry.transposes:
            self._along(result, views[0], 2, 2)
            for here, there in ((-1, -2), (-2, -1)):
                self._join(*self._named(result)[here], *self._named(views[0])[there])
        else:
            # an op that needs its last dimension whole, or (a movement) its last two
            whole = 2 if isinstance(entry, Movement) else 1
            for made in statement.results:
                for k in range(min(whole, made.rank)):
                    self._ask_of(made, -1 - k, AxisRole.WHOLE)
            for view in views:
                for k in range(min(whole, len(view.shape))):
                    self._ask_of(view, -1 - k, AxisRole.WHOLE)
                if statement.op != ROWS_OF:
                    self._along(result, view, whole, whole)
            if statement.op == ROWS_OF:
                everything: tuple[ArrayView | Array, ...] = (*views, *statement.results)
                for value in everything:
                    for k in range(len(self._named(value))):
                        self._ask_of(value, k, AxisRole.WHOLE)


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
