"""Place a function on the ranks of a mesh: find the layout of each array, and make each array the part that a rank holds.

    h = x @ up; y = h @ down; total = move(y)        x: R, up: columns cut along y, down: rows
    the same statements on parts: up [64, 32] of [64, 64]; y is a partial sum over y; total = allreduce(y)

Layouts flow through operations by the rules of `TensorLayout`; where they do not fit, the error names both lines and the move that mends
them. Of n rows over p ranks, n divided by p or not, a part has as many rows as a number or a symbol says; its bound is ceildiv(n, p).
State takes the cuts of what is written to it. A loop over all of a cut dimension, `for h in tt.each(q.shape[0])`, runs on each rank over
the rank's own positions. Without a mesh, a move gives its operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pto_wsp.errors import FunctionCollectiveError, PtoError, RankError, ShardUseError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir.extents import product, same, simplified
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import Const, Element, Scalar, SymbolRef, Var, print_scalar
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayStep,
    ArrayView,
    Assumption,
    Body,
    Extents,
    Flip,
    Insert,
    Item,
    Make,
    Operand,
    Put,
    Refold,
    Show,
    Statement,
    TensorFunction,
    TileCut,
)
from pto_wsp.ir.tensor_layout import Reduction, Replicate, Shard, TensorLayout
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.entries import elementwise, reduce
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.tensors import MOVE, TAKE, entry_of
from pto_wsp.ops.whole import Movement
from pto_wsp.passes.tensor.effects import fresh_ids, with_views
from pto_wsp.passes.tensor.own_results import in_shape_of_results, with_own_results
from pto_wsp.passes.tensor.planned import LocalArrays, WholeArray
from pto_wsp.passes.tensor.substitute import with_scalars
from pto_wsp.passes.tensor.view_steps import composed
from pto_wsp.source import Span
from pto_wsp.values import dataclass

_MEANS = {reduce.rowmean.name: reduce.rowsum.name, reduce.colmean.name: reduce.colsum.name}
_REDUCES: Mapping[str, Reduction] = {
    **dict.fromkeys((reduce.rowsum.name, reduce.colsum.name, *_MEANS), "sum"),
    **dict.fromkeys((reduce.rowmax.name, reduce.colmax.name), "max"),
    **dict.fromkeys((reduce.rowmin.name, reduce.colmin.name), "min")}
_EXTREMES = {elementwise.maximum.name: "max", elementwise.minimum.name: "min"}
_ADDS, _SCALES = (elementwise.add.name, elementwise.sub.name), (elementwise.mul.name, elementwise.div.name)
_NEGATION = elementwise.neg.name
_FIRST_ID = 1 << 20      # of the symbols of a rank: a function's own count from 0


@dataclass(frozen=True, slots=True)
class MeshPlacement:
    """Where a function runs: the mesh, the layout of each parameter in order, and the number of each symbol of the function."""

    mesh: Mesh
    layouts: tuple[TensorLayout, ...]
    sizes: Mapping[str, int]


def place_shards(function: TensorFunction, placement: MeshPlacement) -> tuple[TensorFunction, LocalArrays]:
    """Return a function as each rank runs it, on parts of arrays, and the whole array of each part.

    Raises: M101 and M108 for layouts that do not fit; M103 for an InOut parameter of which ranks hold copies; M109 for a move that would
    differ by rank.
    """
    sized = _with_sizes(function, placement.sizes)
    own = in_shape_of_results(with_own_results(sized, of_state=True))
    cuts = _Cuts()
    while True:
        work = _Placing(own, placement, cuts)
        try:
            return work.placed()
        except _StartOver:      # a state or a loop is cut: what was placed before it is placed anew
            continue


def without_moves(function: TensorFunction) -> TensorFunction:
    """Return a function for one rank: a move is its operand, or a copy of an operand that is written later."""
    if not any(isinstance(leaf, Apply) and leaf.op == MOVE for leaf in flow.leaves(function.body)):
        return function
    written = {leaf.target.array.id for leaf in flow.leaves(function.body) if isinstance(leaf, Put)}
    moved: dict[int, ArrayView] = {}

    def seen(view: ArrayView) -> ArrayView:
        source = moved.get(view.array.id)
        return view if source is None else composed(source.then(*view.steps))

    def scalar(node: Scalar) -> Scalar:
        return s.substitute(node, lambda inner: _element_of(inner, moved))

    def items(body: Body) -> Body:
        found: list[Item] = []
        for item in body.items:
            if not isinstance(item, flow.Do):
                found.append(flow.with_bodies(item, items))
                continue
            leaf = with_views(item.leaf, seen)
            if isinstance(leaf, Apply) and leaf.op == MOVE:
                (operand,), (result,) = leaf.operands, leaf.results
                assert isinstance(operand, ArrayView)
                if operand.array.id in written:
                    found += [flow.Do(Make(result, None, leaf.span)), flow.Do(Put(ArrayView(result), operand, span=leaf.span))]
                else:
                    moved[result.id] = operand
                continue
            found.append(flow.Do(leaf))
        return replace(body, items=tuple(found))

    body = items(function.body)
    return replace(function, body=with_scalars(body, scalar), results=tuple(map(seen, function.results)))


def _element_of(node: Scalar, moved: Mapping[int, ArrayView]) -> Scalar | None:
    """Return an element of a moved array as the element of what was moved; None for another scalar."""
    if not isinstance(node, Element) or node.tensor.id not in moved:
        return None
    source = moved[node.tensor.id]
    if source.steps:
        raise ShardUseError("an element of a moved view is read as a number", expected="a move of a whole tensor", found=source.array.name)
    return Element(source.array.ref, node.index)


def _with_sizes(function: TensorFunction, sizes: Mapping[str, int]) -> TensorFunction:
    """Return a function whose symbols are numbers."""
    values: dict[Scalar, Scalar] = {symbol: Const(sizes[symbol.name]) for symbol in function.symbols}

    def number(node: Scalar) -> Scalar:
        found = s.substitute(node, values.get)
        return simplified(found) if s.scalar_dtype(found).is_integer else found

    def array(one: Array) -> Array:
        return replace(one, shape=tuple(map(number, one.shape)))

    body = flow.rewrite_leaves(with_scalars(function.body, number), lambda leaf: with_views(leaf, composed))
    (shown,) = with_scalars(flow.Sequence(tuple(flow.Do(Show("", view)) for view in function.results)), number),
    results = tuple(composed(item.leaf.value) for item in shown.items if isinstance(item, flow.Do) and isinstance(item.leaf, Show))
    return replace(function, params=tuple(replace(param, array=array(param.array)) for param in function.params), body=body,
                   results=results, symbols=(), assumptions=())


class _StartOver(Exception):
    """Place the function anew: a fact about state or a loop was found that what stands before did not know."""


@dataclass(slots=True, eq=False)
class _Cuts:
    """The cuts of a function: mesh axes that cut state, by array and dimension, and mesh axes that cut loops."""

    state: dict[int, dict[int, Shard]] = field(default_factory=dict)
    loops: dict[Var, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PartView:
    """A view of a part: the layout of the view, the extents over all ranks, and the view itself."""

    layout: TensorLayout
    shape: Extents
    view: ArrayView


class _Placing:
    """Places one function."""

    def __init__(self, function: TensorFunction, placement: MeshPlacement, cuts: _Cuts) -> None:
        self._function, self._placement, self._cuts = function, placement, cuts
        self._mesh = placement.mesh
        self._sizes = dict(self._mesh.axes)
        self._layouts: dict[int, TensorLayout] = {}
        self._whole: dict[int, Extents] = {}
        self._local: dict[int, Array] = {}
        self._state: set[int] = set()
        self._depth: dict[int, int] = {}             # of the array: how many cut loops are around it
        self._scalars: dict[SymbolRef, Scalar] = {}
        self._bounds: dict[SymbolRef, int] = {}
        self._at = {name: SymbolRef(f"{name}_at", _FIRST_ID + k) for k, name in enumerate(self._sizes)}
        self._open: list[Var] = []                   # the cut loops around
        self._loops: dict[Var, Any] = {}
        self._span = function.span
        self._ids = fresh_ids(function)

    def placed(self) -> tuple[TensorFunction, LocalArrays]:
        """Return the function on parts.

        Raises: _StartOver, and as `place_shards`.
        """
        function = self._function
        params = []
        for param, layout in zip(function.params, self._placement.layouts, strict=True):
            free = [name for name, size in self._mesh.axes if size > 1 and layout.dim_of(name) is None]
            if param.written and free:
                raise RankError(f"every rank along {', '.join(free)} has a copy of `{param.path}`, which is written", param.span,
                                expected="an InOut argument that every axis of the mesh cuts", found=repr(layout),
                                help="return the new value instead")
            params.append(replace(param, array=self._defined(param.array, layout)))
        for constant in function.constants:
            self._defined(constant.array, _replicated(constant.array.rank, constant.array, function.span))
        body = self._body(function.body)
        for view in function.results:
            layout = self._layouts[view.array.id]
            if layout.partial:
                axes = ", ".join(str(one.axis) for one in layout.partial)
                raise ShardUseError(f"`{view.array.name}` is returned and partial over {axes}", layout.span,
                                    expected="a sharded or replicated result", found=repr(layout),
                                    help="allreduce it first; reduce_scatter leaves each rank a shard of the total")
        whole = {one: WholeArray(tuple(int(n.value) for n in shape if isinstance(n, Const)), self._layouts[one])
                 for one, shape in self._whole.items() if all(isinstance(n, Const) for n in shape)}
        made = replace(function, params=tuple(params), body=body, symbols=tuple(self._scalars),
                       results=tuple(ArrayView(self._local[view.array.id]) for view in function.results),
                       assumptions=tuple(Assumption(s.binary(s.Op.LE, symbol, Const(bound))) for symbol, bound in self._bounds.items()))
        sizes = {symbol.name: bound for symbol, bound in self._bounds.items()}
        return made, LocalArrays(self._mesh, whole, self._scalars, self._at, sizes)

    # -- arrays --------------------------------------------------------------------------------------------------------
    def _defined(self, array: Array, layout: TensorLayout) -> Array:
        """Return the part of an array of a layout."""
        shape = tuple(self._rows(n, cut) for n, cut in zip(map(self._scalar, array.shape), layout.dist, strict=True))
        self._layouts[array.id], self._whole[array.id] = layout, array.shape
        self._depth[array.id] = len(self._open)
        made = self._local[array.id] = replace(array, shape=shape)
        return made

    def _rows(self, extent: Scalar, cut: Replicate | Shard) -> Scalar:
        """Return how many of the positions of a dimension a rank has."""
        if not isinstance(cut, Shard):
            return extent
        p = self._sizes[str(cut.axis)]
        if not isinstance(extent, Const):
            raise ShardUseError("a dimension is cut whose size only a run knows", self._span, expected="a number",
                                found=print_scalar(extent))
        n = int(extent.value)
        if n % p == 0:
            return Const(n // p)
        most = -(-n // p)
        symbol = SymbolRef(f"{cut.axis}_rows_of_{n}", _FIRST_ID + 100 + n * len(self._sizes) + list(self._sizes).index(str(cut.axis)))
        at = self._at[str(cut.axis)]       # as the part of a Tensor has it: extents are equal where they are written alike
        stop, start = (s.minimum(s.mul(one, Const(most)), extent) for one in (s.add(at, Const(1)), at))
        self._scalars[symbol] = s.minimum(s.sub(stop, start), Const(most))
        self._bounds[symbol] = max(most, 2)      # an axis of one position at most counts as one of one, and a rank may have none
        return symbol

    def _start(self, extent: Scalar, axis: str) -> Scalar:
        """Return the first of the positions of a dimension that a rank has."""
        assert isinstance(extent, Const)
        n, p = int(extent.value), self._sizes[axis]
        first = s.mul(self._at[axis], Const(-(-n // p)))
        return first if n % p == 0 else s.minimum(first, extent)

    def _scalar(self, node: Scalar) -> Scalar:
        """Return a scalar on a rank: the variable of a cut loop counts from the rank's first position."""
        for leaf in s.leaves(node):
            if isinstance(leaf, Element):
                self._check_element(leaf)
        values: dict[Scalar, Scalar] = {var: s.add(self._start(self._loops[var].stop, self._cuts.loops[var]), var) for var in self._open}
        return s.substitute(node, values.get) if values else node

    def _check_element(self, element: Element) -> None:
        layout = self._layouts.get(element.tensor.id)
        if layout is not None and not layout.is_replicated:
            raise ShardUseError(f"an element of `{element.tensor.name}` is read as a number, and ranks hold parts of it", self._span,
                              expected="a replicated tensor", found=repr(layout), also=(("made here", layout.span),),
                              help="allgather or allreduce it first")

    # -- views ---------------------------------------------------------------------------------------------------------
    def _view(self, view: ArrayView, *, writes: bool = False) -> _PartView:
        """Return a view of a part. `writes`: it is written, so a loop that cuts must pick its place."""
        layout, shape = self._layouts[view.array.id], list(self._whole[view.array.id])
        steps: list[ArrayStep] = []
        dims: list[int | None] = list(range(len(shape)))        # the dimension of the array that each of the view is
        picked: set[Var] = set()
        for step in view.steps:
            match step:
                case Pick(dim, index):
                    layout, own = self._picked(view, layout, shape, dims, dim, index, picked, writes)
                    steps.append(Pick(dim, own))
                    del shape[dim], dims[dim]
                case Cut(dim, start, stop, by):
                    layout, made = self._cut(layout, shape, step)
                    steps.append(made)
                    span = s.sub(stop, start)
                    shape[dim] = simplified(span if by == 1 else s.ceil_div(span, Const(by)))
                    dims[dim] = dims[dim] if start == Const(0) and by == 1 else None
                case Permute(order):
                    layout = layout.permuted(order)
                    steps.append(step)
                    shape, dims = [shape[k] for k in order], [dims[k] for k in order]
                case Insert(dim):
                    layout = _with_dist(layout, (*layout.dist[:dim], Replicate(), *layout.dist[dim:]))
                    steps.append(step)
                    shape.insert(dim, Const(1))
                    dims.insert(dim, None)
                case Flip(dim):
                    layout = layout.along(dim, "a reversal") if isinstance(layout.dist[dim], Shard) else layout
                    steps.append(step)
                case Refold(extents):
                    layout = self._refolded(layout, shape, extents)
                    shape = list(extents)
                    dims = [None] * len(shape)
                    steps.append(Refold(tuple(self._rows(self._scalar(n), cut) for n, cut in zip(extents, layout.dist, strict=True))))
                case TileCut():
                    raise AssertionError("tiles are cut behind this pass")
        for var in self._open:
            axis = self._cuts.loops[var]
            if writes and var not in picked and self._depth[view.array.id] < self._open.index(var) + 1:
                raise ShardUseError(f"`{view.array.name}` is written in a loop whose iterations are on ranks along {axis!r}", self._span,
                                  expected=f"a place that the loop picks: {view.array.name}[{var.name}] = ...",
                                  found=repr(self._layouts[view.array.id]), help="reduce over the loop's dimension by an operation")
            if axis in layout.axes:
                raise ShardUseError(f"`{view.array.name}` is cut along {axis!r}, and so is the loop over {var.name}", self._span,
                                  expected="a dimension that the loop picks", found=repr(layout))
        return _PartView(layout, tuple(shape), composed(ArrayView(self._local[view.array.id], tuple(steps))))

    def _picked(self, view: ArrayView, layout: TensorLayout, shape: Sequence[Scalar], dims: Sequence[int | None], dim: int,
                index: Scalar, picked: set[Var], writes: bool) -> tuple[TensorLayout, Scalar]:
        cut = layout.dist[dim]
        rest = _with_dist(layout, (*layout.dist[:dim], *layout.dist[dim + 1:]))
        if isinstance(index, Var) and index in self._cuts.loops and same(self._loops[index].stop, shape[dim]):
            axis = self._cuts.loops[index]
            if cut == Shard(axis):
                picked.add(index)
                return rest, index
            if writes and view.array.id in self._state and dims[dim] is not None and cut == Replicate():
                self._cut_state(view.array, dims[dim], Shard(axis))
        if not isinstance(cut, Shard):
            return rest, self._scalar(index)
        if isinstance(index, Var) and index not in self._cuts.loops:
            loop = self._loops.get(index)
            if loop is not None and loop.start == Const(0) and loop.step == Const(1) and same(loop.stop, shape[dim]):
                self._cuts.loops[index] = str(cut.axis)
                raise _StartOver
        return layout.indexed(dim), index

    def _cut(self, layout: TensorLayout, shape: Sequence[Scalar], step: Cut) -> tuple[TensorLayout, ArrayStep]:
        cut, extent = layout.dist[step.dim], shape[step.dim]
        if not isinstance(cut, Shard):
            return layout, Cut(step.dim, self._scalar(step.start), self._scalar(step.stop), step.step)
        if not (isinstance(step.start, Const) and isinstance(step.stop, Const) and isinstance(extent, Const) and step.step == 1):
            layout.indexed(step.dim)      # raises: a part at a scalar's place lies on any rank
            raise AssertionError("unreachable")
        layout = layout.sliced(step.dim, int(step.start.value), int(step.stop.value), int(extent.value), self._mesh)
        return layout, Cut(step.dim, Const(0), self._rows(step.stop, cut))

    def _refolded(self, layout: TensorLayout, shape: Sequence[Scalar], wanted: Extents) -> TensorLayout:
        """Return the layout of the elements in another shape: a cut stays with the first of the dimensions that its own becomes."""
        dist: list[Replicate | Shard] = [Replicate()] * len(wanted)
        for old, new in _matched(shape, wanted):
            for place, dim in enumerate(old):
                cut = layout.dist[dim]
                if not isinstance(cut, Shard):
                    continue
                p = self._sizes[str(cut.axis)]
                first = next((k for k in new if wanted[k] != Const(1)), None)
                sizes = [n for n in (shape[dim], wanted[first] if first is not None else None)]
                whole = len(old) == len(new) == 1 or all(isinstance(n, Const) and int(n.value) % p == 0 for n in sizes)
                leads = all(shape[k] == Const(1) for k in old[:place])
                if first is None or not whole or not leads:
                    raise ShardUseError(f"dimension {dim} is cut, and a reshape takes it apart", self._span,
                                      expected="a shape whose shards are rows of the same ranks", also=(("made here", layout.span),),
                                      found=f"{layout!r} of [{', '.join(map(print_scalar, shape))}] as "
                                            f"[{', '.join(map(print_scalar, wanted))}]",
                                      help=f"relayout to {layout.with_dim(dim, Replicate())!r} first")
                dist[first] = cut
        return _with_dist(layout, dist)

    def _cut_state(self, array: Array, dim: int | None, cut: Shard) -> None:
        """Make a dimension of state one that is cut, and place the function anew."""
        assert dim is not None
        layout = self._layouts[array.id]
        if layout.dist[dim] != Replicate() or cut.axis in layout.axes:
            return
        self._cuts.state.setdefault(array.id, {})[dim] = cut
        raise _StartOver

    def _own_part(self, placed: _PartView, layout: TensorLayout, shape: Extents) -> ArrayView:
        """Return a view that is joined with parts of a layout: of a whole dimension, the rank's own part."""
        view, offset = placed.view, layout.rank - placed.layout.rank
        steps: list[ArrayStep] = []
        for dim, (extent, cut) in enumerate(zip(placed.shape, placed.layout.dist, strict=True)):
            wanted = layout.dist[offset + dim]
            if cut == wanted or not isinstance(wanted, Shard) or extent == Const(1):
                continue
            start = self._start(extent, str(wanted.axis))
            rows = self._rows(extent, wanted)
            if self._sizes[str(wanted.axis)] > 1:
                steps.append(Cut(dim, start, simplified(s.add(start, rows))))
        return composed(view.then(*steps)) if steps else view

    # -- statements ----------------------------------------------------------------------------------------------------
    def _body(self, body: Body) -> Body:
        items: list[Item] = []
        for item in body.items:
            if isinstance(item, flow.Do):
                self._span = item.leaf.span
                try:
                    items += map(flow.Do, self._statement(item.leaf))
                except PtoError as problem:
                    problem.span = self._span
                    raise
            elif isinstance(item, flow.Loop):
                items.append(self._loop(item))
            elif isinstance(item, flow.Choice):
                branches = []
                for branch in item.branches:
                    self._span = branch.span
                    branches.append(replace(branch, condition=self._scalar(branch.condition), body=self._body(branch.body)))
                items.append(replace(item, branches=tuple(branches), otherwise=self._body(item.otherwise)))
            else:
                items.append(flow.with_bodies(item, self._body))
        return replace(body, items=tuple(items))

    def _loop(self, loop: Any) -> Any:
        self._span = loop.span
        self._loops[loop.var] = loop
        axis = self._cuts.loops.get(loop.var)
        start, stop, step = (self._scalar(one) for one in (loop.start, loop.stop, loop.step))
        if axis is None:
            return replace(loop, start=start, stop=stop, step=step, body=self._body(loop.body))
        self._open.append(loop.var)
        body = self._body(loop.body)
        self._open.pop()
        return replace(loop, stop=self._rows(loop.stop, Shard(axis)), body=body)

    def _statement(self, leaf: Statement) -> list[Statement]:
        match leaf:
            case Apply():
                return self._move(leaf) if leaf.op == MOVE else self._apply(leaf)
            case Make(array):
                layout = _replicated(array.rank, array, leaf.span)
                for dim, cut in self._cuts.state.get(array.id, {}).items():
                    layout = _with_dist(layout, (*layout.dist[:dim], cut, *layout.dist[dim + 1:]))
                self._state.add(array.id)
                return [replace(leaf, array=self._defined(array, layout))]
            case Put():
                return [self._put(leaf)]
            case Show():
                return [replace(leaf, value=self._view(leaf.value).view)]

    def _put(self, put: Put) -> Put:
        target = self._view(put.target, writes=True)
        value: Operand = put.value if isinstance(put.value, ArrayView) else self._scalar(put.value)
        inner, shape = target.layout, target.shape
        table = None
        if put.table is not None:
            placed = self._view(put.table)
            placed.layout.other("a table of places")
            if isinstance(inner.dist[0], Shard) or not placed.layout.is_replicated:
                raise ShardUseError("rows are written through a table, and ranks hold parts of them", self._span, found=repr(inner),
                                  expected="a whole first dimension, and a replicated table", also=(("made here", inner.span),))
            table = placed.view
            inner = _with_dist(inner, (*placed.layout.dist, *inner.dist[1:]))
            shape = (*placed.shape, *shape[1:])
        if isinstance(put.value, ArrayView):
            given = self._view(put.value)
            given.layout.other("a store")
            offset = inner.rank - given.layout.rank
            for dim, cut in enumerate(given.layout.dist):
                wanted = inner.dist[offset + dim]
                if not isinstance(cut, Shard) or cut == wanted:
                    continue
                place = self._dim_of_state(put.target, offset + dim) if table is None else None
                if wanted == Replicate() and place is not None:
                    self._cut_state(put.target.array, place, cut)
                raise ShardUseError("a value is written to a tensor that ranks hold otherwise", self._span,
                                  expected=f"{inner!r}, of `{put.target.array.name}`", found=repr(given.layout),
                                  also=(("the value was made here", given.layout.span), ("the tensor was made here", inner.span)),
                                  help=f"relayout the value to {inner!r} first")
            value = self._own_part(given, inner, shape)
        return replace(put, target=target.view, value=value, table=table)

    def _dim_of_state(self, view: ArrayView, dim: int) -> int | None:
        """Return the dimension of state that a dimension of a view of it is, from the first position on; None where there is none."""
        if view.array.id not in self._state:
            return None
        dims: list[int | None] = list(range(view.array.rank))
        for step in view.steps:
            match step:
                case Pick(at, _):
                    del dims[at]
                case Permute(order):
                    dims = [dims[k] for k in order]
                case Insert(at):
                    dims.insert(at, None)
                case Cut(at):
                    dims[at] = None
                case _:
                    return None
        return dims[dim]

    # -- operations ----------------------------------------------------------------------------------------------------
    def _apply(self, leaf: Apply) -> list[Statement]:
        placed = {k: self._view(one) for k, one in enumerate(leaf.operands) if isinstance(one, ArrayView)}
        result = leaf.results[0]
        entry = entry_of(leaf.op)
        layouts = [one.layout for one in placed.values()]
        match entry:
            case Elementwise():
                layout = self._joined(leaf, placed, result)
            case Convert():
                layout = layouts[0].other("a cast")
            case RowReduce() | ColReduce():
                return self._reduced(leaf, layouts[0], -1 if isinstance(entry, RowReduce) else -2, placed[0])
            case Matmul():
                layout = layouts[0].matmul(layouts[1])
            case Movement(transposes=True):
                layout = layouts[0].permuted((*range(result.rank - 2), result.rank - 1, result.rank - 2))
            case Expand():
                layout = self._joined(leaf, placed, result)
            case None if leaf.op == TAKE:
                source, table = layouts
                source.other("a read by table")
                layout = _with_dist(table.other("a table"), (*table.dist, *source.indexed(0).dist))
            case _ if not layouts:
                layout = _replicated(result.rank, result, leaf.span)
            case _:
                whole = 2 if isinstance(entry, Movement) else 1
                whole = max((one.rank for one in layouts), default=0) if len(leaf.results) > 1 else whole
                for one in layouts:
                    for back in range(min(whole, one.rank)):
                        one.along(-1 - back, f"`{leaf.op}`")
                layout = self._joined(leaf, placed, result)
        layout = _at(layout, leaf.span)
        operands: list[Operand] = []
        for k, operand in enumerate(leaf.operands):
            if k not in placed:
                operands.append(self._scalar(operand))       # type: ignore[arg-type]
            elif leaf.op == TAKE:
                operands.append(placed[k].view)
            elif isinstance(entry, Matmul):
                operands.append(self._factor(placed[k], layout, k))
            else:
                operands.append(self._own_part(placed[k], layout, result.shape) if layout.rank >= placed[k].layout.rank
                                else placed[k].view)
        results = tuple(self._defined(one, layout if one.rank == layout.rank else _replicated(one.rank, one, leaf.span))
                        for one in leaf.results)
        return [replace(leaf, operands=tuple(operands), results=results)]

    def _factor(self, placed: _PartView, layout: TensorLayout, position: int) -> ArrayView:
        """Return a factor of a product: of whole leading dimensions, the rank's own part."""
        leading = layout.rank - 2
        dist = (*layout.dist[:leading], *placed.layout.dist[-2:])
        return self._own_part(placed, _free(dist), placed.shape)

    def _joined(self, leaf: Apply, placed: Mapping[int, _PartView], result: Array) -> TensorLayout:
        """Return the layout of an operation element by element."""
        for one in placed.values():
            offset = result.rank - one.layout.rank
            for dim, cut in enumerate(one.layout.dist):
                if isinstance(cut, Shard) and one.shape[dim] == Const(1) and result.shape[offset + dim] != Const(1):
                    raise ShardUseError(f"dimension {dim} of one position is cut, and repeated", self._span, found=repr(one.layout),
                                      also=(("made here", one.layout.span),),
                                      help=f"relayout to {one.layout.with_dim(dim, Replicate())!r} first")
        layouts = [one.layout for one in placed.values()]
        found = layouts[0]
        scalars = len(leaf.operands) > len(layouts)
        if scalars and found.partial and not (leaf.op in _SCALES and (leaf.op == _SCALES[0] or 0 in placed)):
            found = found.other(f"`{leaf.op}` with a number")
        if len(layouts) == 1 and not scalars and leaf.op != _NEGATION:
            found = found.other(f"`{leaf.op}`")
        if found.partial and leaf.op == _NEGATION and any(one.op != "sum" for one in found.partial):
            found = found.other("a negation")
        if found.partial and scalars and any(one.op != "sum" for one in found.partial):
            found = found.other("a factor")
        for other in layouts[1:]:
            if leaf.op in _ADDS:
                found = found.add(other)
            elif leaf.op == _SCALES[0]:
                found = found.scale(other)
            elif leaf.op == _SCALES[1] and found.partial:
                found = found.scale(other.other("a divisor"))
            elif leaf.op in _EXTREMES and found.partial and found.partial == other.partial and \
                    all(one.op == _EXTREMES[leaf.op] for one in found.partial):
                found = found._joined(other)
            else:
                found = found.join(other)
        return found

    def _reduced(self, leaf: Apply, layout: TensorLayout, dim: int, placed: _PartView) -> list[Statement]:
        (result,) = leaf.results
        cut = layout.dist[dim]
        op = leaf.op
        if not isinstance(cut, Shard) and not layout.partial:
            return [replace(leaf, operands=(placed.view,), results=(self._defined(result, _at(layout, leaf.span)),))]
        reduction: Any = _REDUCES.get(op, op)      # of another one it is an error, which names the op
        made = _at(layout.reduced(dim, reduction, keeps=True), leaf.span)
        if op not in _MEANS or not isinstance(cut, Shard):
            return [replace(leaf, operands=(placed.view,), results=(self._defined(result, made),))]
        extent = placed.shape[dim]     # a mean divides by the whole extent
        assert isinstance(extent, Const)
        total = self._defined(Array(next(self._ids), f"{result.name}.sum", result.shape, result.dtype), made)
        part = self._defined(result, made)
        return [replace(leaf, op=_MEANS[op], operands=(placed.view,), results=(total,)),
                Apply(_SCALES[1], (ArrayView(total), Const(float(extent.value))), (part,), (), leaf.group, leaf.span)]

    # -- moves ---------------------------------------------------------------------------------------------------------
    def _move(self, leaf: Apply) -> list[Statement]:
        (operand,), (result,) = leaf.operands, leaf.results
        assert isinstance(operand, ArrayView)
        attrs = dict(leaf.attrs)
        what = str(attrs["move"])
        if self._open:
            raise FunctionCollectiveError(f"{what} in a loop whose iterations are on different ranks", self._span,
                                  found=f"the loop over {self._open[-1].name}, along {self._cuts.loops[self._open[-1]]!r}",
                                  help="keep the parts in a tensor made before the loop, and move them behind it")
        placed = self._view(operand)
        if not placed.shape:        # ranks move rows: of a number, one row of one
            row = Array(next(self._ids), f"{result.name}.row", (Const(1),), result.dtype)
            moved = Array(next(self._ids), result.name, (Const(1),), result.dtype)
            self._defined(row, _with_dist(placed.layout, (Replicate(),)))
            rows = self._move(replace(leaf, operands=(ArrayView(row),), results=(moved,)))
            number = self._defined(result, _at(TensorLayout((), partial=self._layouts[moved.id].partial), leaf.span))
            return [Make(row, None, leaf.span), Put(ArrayView(row), placed.view.then(Insert(0)), span=leaf.span), *rows,
                    Make(number, None, leaf.span), Put(ArrayView(number), ArrayView(moved, (Pick(0, Const(0)),)), span=leaf.span)]
        if not all(isinstance(n, Const) for n in placed.shape) or Const(0) in placed.shape:
            raise FunctionCollectiveError(f"{what} of a tensor whose shape only a run knows, or without elements", self._span,
                                  expected="a shape of numbers", found=f"[{', '.join(map(print_scalar, placed.shape))}]")
        layout = _at(self._target(what, attrs, placed.layout, operand), leaf.span)
        before: list[Statement] = []
        source = placed.view.array
        if placed.view.steps or (layout.dist, layout.partial) == (placed.layout.dist, placed.layout.partial):
            made = result
            if placed.view.steps and (layout.dist, layout.partial) != (placed.layout.dist, placed.layout.partial):
                made = Array(next(self._ids), f"{result.name}.part", placed.shape, result.dtype)
            source = self._defined(made, placed.layout)
            before = [Make(source, None, leaf.span), Put(ArrayView(source), placed.view, span=leaf.span)]
            if made is result:       # it is there already
                return before
        axis = [one for one in placed.layout.axes if layout.dim_of(one) != placed.layout.dim_of(one)
                or layout.reduction_of(one) != placed.layout.reduction_of(one)]
        if what != "relayout":
            attrs["axis"] = str(axis[0])
        return [*before, replace(leaf, operands=(ArrayView(source),), results=(self._defined(result, layout),), attrs=tuple(attrs.items()))]

    def _target(self, what: str, attrs: Mapping[str, Any], layout: TensorLayout, operand: ArrayView) -> TensorLayout:
        """Return the layout that a collective leads to.

        Raises: M108 where it does not start from this one, M102 for an axis that the mesh does not have.
        """
        if what == "relayout":
            dist = tuple(Replicate() if cut == "" else Shard(self._axis(cut)) for cut in attrs["cuts"])
            return TensorLayout(dist or layout.dist)
        partial = what in ("allreduce", "reduce_scatter")
        fitting = [str(one.axis) for one in layout.partial] if partial else [str(one.axis) for one in layout.dist if isinstance(one, Shard)]
        given = attrs.get("axis")
        axis = self._axis(given) if given is not None else fitting[0] if len(fitting) == 1 else None
        if axis not in fitting:
            is_so = f"{'partial' if partial else 'cut'} along"
            problem = f"`{operand.array.name}` is {is_so} no axis" if not fitting else "which mesh axis?" if given is None else \
                f"`{operand.array.name}` is not {is_so} {axis!r}"
            raise ShardUseError(f"{what}: {problem}", self._span, found=repr(layout), also=(("made here", layout.span),),
                              expected=f"a tensor that is {is_so} an axis" if not fitting else " or ".join(map(repr, fitting)))
        return layout.with_axis(axis, dim=attrs.get("dim"))

    def _axis(self, axis: object) -> str:
        return self._mesh.axes[self._mesh.axis(axis)][0]


def _matched(shape: Sequence[Scalar], wanted: Extents) -> list[tuple[list[int], list[int]]]:
    """Return the dimensions of two shapes of as many elements in groups of equal products, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    old, new = 0, 0
    while old < len(shape) or new < len(wanted):
        ours, theirs = [old] if old < len(shape) else [], [new] if new < len(wanted) else []
        old, new = old + len(ours), new + len(theirs)
        while not same(product(shape[k] for k in ours), product(wanted[k] for k in theirs)):
            left, right = product(shape[k] for k in ours), product(wanted[k] for k in theirs)
            less = isinstance(left, Const) and isinstance(right, Const) and left.value < right.value
            if (less or new == len(wanted)) and old < len(shape):
                ours.append(old)
                old += 1
            elif new < len(wanted):
                theirs.append(new)
                new += 1
            else:
                break
        groups.append((ours, theirs))
    return groups


def _free(dist: Sequence[Replicate | Shard]) -> TensorLayout:
    """Return cuts as a layout, of which only the cuts are asked."""
    seen: set[object] = set()
    kept: list[Replicate | Shard] = []
    for cut in dist:
        kept.append(Replicate() if isinstance(cut, Shard) and cut.axis in seen else cut)
        seen |= {cut.axis} if isinstance(cut, Shard) else set()
    return TensorLayout(tuple(kept))


def _with_dist(layout: TensorLayout, dist: Sequence[Replicate | Shard]) -> TensorLayout:
    made = TensorLayout(tuple(dist), partial=layout.partial)
    made.span = layout.span
    return made


def _at(layout: TensorLayout, span: Span) -> TensorLayout:
    """Return a layout that was made at a line."""
    made = TensorLayout(layout.dist, layout.mem, partial=layout.partial)
    made.span = span
    return made


def _replicated(rank: int, array: Array, span: Span) -> TensorLayout:
    return _at(TensorLayout.replicated(rank), span)
