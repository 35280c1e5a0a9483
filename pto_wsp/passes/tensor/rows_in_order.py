"""Let the rows that tasks write through `tt.rows_of` lie one behind the other, and take them to their places afterwards.

    for e in each(n): out[pairs[e]] = v                                  before
    for e in each(n): rows[starts[e]:starts[e + 1]] = v                  after; pairs[e] is pairs[starts[e]:starts[e + 1]]
    out = take(rows, pairs.ranks)

Two iterations then write two stretches of rows. Edges between tasks are made of regions, so iterations run side by side; rows scattered
through a table would be a write of the whole tensor. `ranks` is a third result of `rows_of`: where each place stands among the places.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.ir import flow
from pto_wsp.ir.extents import same
from pto_wsp.ir.scalar import elements_in
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body, Item, Make, Put, Statement, TensorFunction
from pto_wsp.ir.view import Cut
from pto_wsp.passes.tensor.axes import ROWS_OF, TAKE
from pto_wsp.passes.tensor.effects import fresh_ids, with_views
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext


def rows_in_order(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function with rows written in the order of the index, where each row is written through one index and read afterwards."""
    return replace(planned, function=with_rows_in_order(planned.function))


def with_rows_in_order(function: TensorFunction) -> TensorFunction:
    """Return a function in which state that is written through the places of one `rows_of` alone is written in the order of the places."""
    places = {leaf.results[0].id: leaf for leaf in flow.leaves(function.body) if isinstance(leaf, Apply) and leaf.op == ROWS_OF}
    if not places:
        return function
    rewriting = _OrderedRows(function, places)
    body = rewriting.of(function.body)
    if not rewriting.taken:
        return function
    return replace(function, body=flow.rewrite_leaves(body, rewriting.leaf),
                   results=tuple(rewriting.read(view) for view in function.results))


class _OrderedRows:
    """The state that is written in order, with the value that each is read as; the ranks of each index."""

    def __init__(self, function: TensorFunction, places: dict[int, Apply]) -> None:
        self._places = places
        self._ids = fresh_ids(function)
        self._by_element = _read_by_element(function)
        self.taken: dict[int, Array] = {}      # by id of state: the value that holds its rows in their places
        self._ranks: dict[int, Array] = {}     # by id of places

    def of(self, body: Body) -> Body:
        """Return a body with a `take` behind the last write of each state that is written in order."""
        items: list[Item] = []
        behind: dict[int, list[Item]] = {}
        for at, item in enumerate(body.items):
            if isinstance(item, flow.Do) and isinstance(item.leaf, Make):
                found = self._written_through(item.leaf.array, body.items[at + 1:])
                if found is not None:
                    behind.setdefault(at + 1 + found[1], []).append(self._take(item.leaf.array, found[0]))
        for at, item in enumerate(body.items):
            items += [flow.with_bodies(item, self.of), *behind.get(at, ())]
        return replace(body, items=tuple(items))

    def _written_through(self, state: Array, items: tuple[Item, ...]) -> tuple[Apply, int] | None:
        """Return the `rows_of` through whose places alone items write state, with the number of the last item that does; None if the
        state is written otherwise, or read before.
        """
        if state.id in self._by_element:
            return None
        used = [(at, leaf) for at, item in enumerate(items) for leaf in flow.leaves(item)]
        puts = [(at, leaf) for at, leaf in used if isinstance(leaf, Put) and leaf.target.array.id == state.id]
        last = max((at for at, _ in puts), default=-1)
        early = any(at <= last and any(view.array.id == state.id for view in leaf.reads) for at, leaf in used)
        indices = {put.table.array.id if self._is_plain(put) and put.table is not None else -1 for _, put in puts}
        if last < 0 or early or len(indices) != 1 or -1 in indices:
            return None
        (index,) = indices
        found = self._places[index]
        inside = any(inner.leaf == found for item in items if not isinstance(item, flow.Do)       # an index for each iteration
                     for inner in flow.walk(item) if isinstance(inner, flow.Do))
        return (found, last) if not inside and same(state.shape[0], found.results[0].shape[0]) else None

    def _is_plain(self, put: Put) -> bool:
        """Tell whether a write is state[index] = v, for a stretch of an index; an add reads the state, too."""
        return (put.table is not None and put.table.array.id in self._places and not put.target.steps
                and all(isinstance(step, Cut) and step.step == 1 for step in put.table.steps) and len(put.table.steps) < 2)

    def _take(self, state: Array, index: Apply) -> Item:
        places = index.results[0]
        if places.id not in self._ranks:
            self._ranks[places.id] = replace(places, id=next(self._ids), name=f"{places.name}.ranks")
        self.taken[state.id] = replace(state, id=next(self._ids), name=f"{state.name}.placed")
        views = ArrayView(state), ArrayView(self._ranks[places.id])
        return flow.Do(Apply(TAKE, views, (self.taken[state.id],), span=index.span))

    def read(self, view: ArrayView) -> ArrayView:
        """Return a view that is read, of the rows in their places."""
        found = self.taken.get(view.array.id)
        return view if found is None else replace(view, array=found)

    def leaf(self, leaf: Statement) -> Statement:
        """Return a statement that writes rows in order, and reads them in their places."""
        match leaf:
            case Put(target, _, table) if target.array.id in self.taken:
                assert table is not None
                return replace(leaf, target=target.then(*table.steps), table=None)
            case Apply(op, _, results) if op == ROWS_OF and results[0].id in self._ranks:
                return replace(leaf, results=(*results, self._ranks[results[0].id]))
            case Apply(op, _, (result,)) if op == TAKE and result in self.taken.values():
                return leaf
            case _:
                return with_views(leaf, self.read)


def _read_by_element(function: TensorFunction) -> frozenset[int]:
    """Return the ids of the arrays of which bounds, indices and other scalars read an element."""
    found: frozenset[int] = frozenset()
    for item in flow.walk(function.body):
        found |= elements_in(one for evaluation in flow.evaluations(item) for one in evaluation.scalars)
        if isinstance(item, flow.Do):
            found |= item.leaf.elements
    return found
