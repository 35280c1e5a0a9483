"""Place a function on the ranks of a mesh: find the layout of each array, and make each array the part that a rank holds.

    h = x @ up; y = h @ down; total = move(y)        x: R, up: columns cut along y, down: rows
    the same statements on parts: up [64, 32] of [64, 64]; y is a partial sum over y; total = allreduce(y)

Layouts flow through operations by the rules of `TensorLayout`; where they do not fit, the error names both lines and the move that mends
them. State takes the cuts of what is written to it, and is partial where terms are. A loop over all of a cut dimension,
`for h in tt.each(q.shape[0])`, runs on each rank over the rank's own positions; state that iterations add to is then a term on each rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pto_wsp.errors import PtoError, RankError, ShardUseError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import Const, Scalar, print_scalar
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayView,
    Assumption,
    Body,
    Item,
    Make,
    Operand,
    Put,
    Show,
    Statement,
    TensorFunction,
)
from pto_wsp.ir.tensor_layout import Reduction, Replicate, Shard, TensorLayout
from pto_wsp.ops.entries import reduce
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.tensors import MOVE, TAKE, entry_of
from pto_wsp.passes.tensor.effects import with_views
from pto_wsp.passes.tensor.own_results import in_shape_of_results, with_own_results
from pto_wsp.passes.tensor.planned import LocalArrays
from pto_wsp.passes.tensor.rank_moves import placed_move
from pto_wsp.passes.tensor.rank_parts import Cuts, PartView, RankParts, StartOver, at_line, cuts_alone, replicated, with_dist
from pto_wsp.passes.tensor.running_terms import ADDS, EXTREMES, NEGATION, SCALES, RunningTerms, running_terms
from pto_wsp.passes.tensor.substitute import with_scalars
from pto_wsp.passes.tensor.view_steps import composed
from pto_wsp.values import dataclass

_MEANS = {reduce.rowmean.name: reduce.rowsum.name, reduce.colmean.name: reduce.colsum.name}
_REDUCES: Mapping[str, Reduction] = {
    **dict.fromkeys((reduce.rowsum.name, reduce.colsum.name, *_MEANS), "sum"),
    **dict.fromkeys((reduce.rowmax.name, reduce.colmax.name), "max"),
    **dict.fromkeys((reduce.rowmin.name, reduce.colmin.name), "min")}


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
    cuts, running = Cuts(), running_terms(own)
    while True:
        work = _Placing(own, placement, cuts, running)
        try:
            return work.placed()
        except StartOver:      # a state or a loop is cut: what was placed before it is placed anew
            continue


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


class _Placing:
    """Places one function."""

    def __init__(self, function: TensorFunction, placement: MeshPlacement, cuts: Cuts, running: RunningTerms) -> None:
        self._function, self._placement, self._running = function, placement, running
        self._parts = RankParts(function, placement.mesh, cuts)

    def placed(self) -> tuple[TensorFunction, LocalArrays]:
        """Return the function on parts.

        Raises: StartOver, and as `place_shards`.
        """
        function = self._function
        params = []
        for param, layout in zip(function.params, self._placement.layouts, strict=True):
            free = [name for name, size in self._parts.mesh.axes if size > 1 and layout.dim_of(name) is None]
            if param.written and free:
                raise RankError(f"every rank along {', '.join(free)} has a copy of `{param.path}`, which is written", param.span,
                                expected="an InOut argument that every axis of the mesh cuts", found=repr(layout),
                                help="return the new value instead")
            params.append(replace(param, array=self._parts.defined(param.array, layout)))
        for constant in function.constants:
            self._parts.defined(constant.array, replicated(constant.array.rank, function.span))
        body = self._body(function.body)
        for view in function.results:
            layout = self._parts.layouts[view.array.id]
            self._parts.view(view)
            if layout.partial:
                axes = ", ".join(str(one.axis) for one in layout.partial)
                raise ShardUseError(f"`{view.array.name}` is returned and partial over {axes}", layout.span,
                                    expected="a sharded or replicated result", found=repr(layout),
                                    help="allreduce it here, or in a function whose body calls this one; reduce_scatter leaves each rank a "
                                    "shard of the total")
        parts = self._parts
        made = replace(function, params=tuple(params), body=body, symbols=tuple(parts.scalars),
                       results=tuple(ArrayView(parts.local[view.array.id]) for view in function.results),
                       assumptions=tuple(Assumption(s.binary(s.Op.LE, symbol, Const(bound))) for symbol, bound in parts.bounds.items()))
        sizes = {symbol.name: bound for symbol, bound in parts.bounds.items()}
        return made, LocalArrays(parts.mesh, parts.whole_arrays(), parts.scalars, parts.at, sizes)

    # -- statements ----------------------------------------------------------------------------------------------------
    def _body(self, body: Body) -> Body:
        items: list[Item] = []
        for item in body.items:
            if isinstance(item, flow.Do):
                self._parts.span = item.leaf.span
                try:
                    items += map(flow.Do, self._statement(item.leaf))
                except PtoError as problem:
                    problem.span = self._parts.span
                    raise
            elif isinstance(item, flow.Loop):
                items.append(self._loop(item))
            elif isinstance(item, flow.Choice):
                branches = []
                for branch in item.branches:
                    self._parts.span = branch.span
                    branches.append(replace(branch, condition=self._parts.scalar(branch.condition), body=self._body(branch.body)))
                items.append(replace(item, branches=tuple(branches), otherwise=self._body(item.otherwise)))
            else:
                items.append(flow.with_bodies(item, self._body))
        return replace(body, items=tuple(items))

    def _loop(self, loop: Any) -> Any:
        self._parts.span = loop.span
        self._parts.loops[loop.var] = loop
        axis = self._parts.cuts.loops.get(loop.var)
        start, stop, step = (self._parts.scalar(one) for one in (loop.start, loop.stop, loop.step))
        if axis is None:
            return replace(loop, start=start, stop=stop, step=step, body=self._body(loop.body))
        self._parts.open.append(loop.var)
        body = self._body(loop.body)
        self._parts.open.pop()
        return replace(loop, stop=self._parts.rows(loop.stop, Shard(axis)), body=body)

    def _statement(self, leaf: Statement) -> list[Statement]:
        match leaf:
            case Apply():
                return placed_move(self._parts, leaf) if leaf.op == MOVE else self._apply(leaf)
            case Make(array):
                layout = replicated(array.rank, leaf.span)
                for dim, cut in self._parts.cuts.state.get(array.id, {}).items():
                    layout = with_dist(layout, (*layout.dist[:dim], cut, *layout.dist[dim + 1:]))
                self._parts.state.add(array.id)
                terms = tuple(self._parts.cuts.terms.get(array.id, {}).values())
                if terms:
                    layout = at_line(TensorLayout(layout.dist, partial=terms), leaf.span)
                    self._check_start(array, leaf.fill, layout)
                return [replace(leaf, array=self._parts.defined(array, layout))]
            case Put():
                return [self._put(leaf)]
            case Show():
                return [replace(leaf, value=self._parts.view(leaf.value).view)]

    def _put(self, put: Put) -> Put:
        update = self._update_of(put)
        target = self._parts.view(put.target, writes=True, updates=update)
        value: Operand = put.value if isinstance(put.value, ArrayView) else self._parts.scalar(put.value)
        inner, shape = target.layout, target.shape
        table = None
        if put.table is not None:
            placed = self._parts.view(put.table)
            placed.layout.other("a table of places")
            if isinstance(inner.dist[0], Shard) or not placed.layout.is_replicated:
                raise ShardUseError("rows are written through a table, and ranks hold parts of them", self._parts.span, found=repr(inner),
                                  expected="a whole first dimension, and a replicated table", also=(("made here", inner.span),))
            table = placed.view
            inner = with_dist(inner, (*placed.layout.dist, *inner.dist[1:]))
            shape = (*placed.shape, *shape[1:])
        if isinstance(put.value, ArrayView):
            given = self._parts.view(put.value, updates=None if put.add else update)
            self._check_terms(put, given.layout, target.layout)
            offset = inner.rank - given.layout.rank
            for dim, cut in enumerate(given.layout.dist):
                wanted = inner.dist[offset + dim]
                if not isinstance(cut, Shard) or cut == wanted:
                    continue
                place = self._parts.dim_of_state(put.target, offset + dim) if table is None else None
                if wanted == Replicate() and place is not None:
                    self._parts.cut_state(put.target.array, place, cut)
                raise ShardUseError("a value is written to a tensor that ranks hold otherwise", self._parts.span,
                                  expected=f"{inner!r}, of `{put.target.array.name}`", found=repr(given.layout),
                                  also=(("the value was made here", given.layout.span), ("the tensor was made here", inner.span)),
                                  help=f"relayout the value to {inner!r} first")
            value = self._parts.own_part(given, inner, shape)
        else:
            self._check_start(put.target.array, put.value, target.layout)
        return replace(put, target=target.view, value=value, table=table)

    def _update_of(self, put: Put) -> Reduction | None:
        """Return how a store combines a value with what is there, if that is so in each iteration of the cut loops around."""
        if put.add:
            return "sum"
        if not isinstance(put.value, ArrayView) or self._parts.depth[put.value.array.id] < len(self._parts.open):
            return None
        return self._running.updates.get(put.value.array.id, (0, None))[1]

    def _check_terms(self, put: Put, given: TensorLayout, held: TensorLayout) -> None:
        """Check that a stored value is a term if its target holds terms of a sum; make state partial over the axes of a partial value.

        Raises: M108, M101, StartOver.
        """
        name = put.target.array.name
        more = [one for one in given.partial if one not in held.partial]
        if more:
            if put.target.array.id in self._parts.state and put.table is None:
                self._parts.hold_terms(put.target.array.id, more)
            given.other("a store")
        if any((one.op == "sum" and one not in given.partial) or (put.add and one.op != "sum") for one in held.partial):
            raise ShardUseError(f"a value that is no term is stored to `{name}`, of which each rank holds a term", self._parts.span,
                                expected=repr(held), found=repr(given), also=((f"`{name}` was made here", held.span),),
                                help=f"start `{name}` at 0, and add the value behind the allreduce")

    def _check_start(self, array: Array, value: object, layout: TensorLayout) -> None:
        """Check a number that is stored to a tensor of which each rank holds a term: the number counts once, not once a rank.

        Raises: M108.
        """
        number = value.value if isinstance(value, Const) else value
        if number is None or number == 0 or all(one.op != "sum" for one in layout.partial):
            return
        axes = ", ".join(str(one.axis) for one in layout.partial)
        raise ShardUseError(f"`{array.name}` is the sum of a term on each rank along {axes}, and each term is set to a number",
                            self._parts.span, expected="0", found=print_scalar(value) if isinstance(value, Scalar) else f"{value}",
                            help="start at 0, and add the number behind the allreduce")

    def _hold_terms(self, leaf: Apply, placed: Mapping[int, PartView]) -> None:
        """Make state partial that a partial value is added to, and place the function anew."""
        wanted: Reduction | None = "sum" if leaf.op in ADDS else EXTREMES.get(leaf.op)
        for k in placed:
            operand = leaf.operands[k]
            state = self._running.states.get(operand.array.id) if isinstance(operand, ArrayView) else None
            terms = [one for j, other in placed.items() if j != k for one in other.layout.partial if one.op == wanted]
            if state is not None and terms:
                self._parts.hold_terms(state, terms)

    # -- operations ----------------------------------------------------------------------------------------------------
    def _apply(self, leaf: Apply) -> list[Statement]:
        result = leaf.results[0]
        old, combines = self._running.updates.get(result.id, (-1, None))
        placed = {k: self._parts.view(one, updates=combines if k == old else None)
                  for k, one in enumerate(leaf.operands) if isinstance(one, ArrayView)}
        entry = entry_of(leaf.op)
        self._hold_terms(leaf, placed)
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
            case Expand():
                layout = self._joined(leaf, placed, result)
            case None if leaf.op == TAKE:
                source, table = layouts
                source.other("a read by table")
                layout = with_dist(table.other("a table"), (*table.dist, *source.indexed(0).dist))
            case _ if not layouts:
                layout = replicated(result.rank, leaf.span)
            case _:
                whole = max((one.rank for one in layouts), default=0) if len(leaf.results) > 1 else 1
                for one in layouts:
                    for back in range(min(whole, one.rank)):
                        one.along(-1 - back, f"`{leaf.op}`")
                layout = self._joined(leaf, placed, result)
        layout = at_line(layout, leaf.span)
        updated = leaf.operands[old] if combines is not None else None
        if isinstance(updated, ArrayView):      # in a cut loop, the ranks that run the loop have terms of it
            axes = [self._parts.cuts.loops[var] for var in self._parts.open]
            terms = [one for one in self._parts.layouts[updated.array.id].partial if one.axis in axes]
            layout = at_line(TensorLayout(layout.dist, partial=(*layout.partial, *terms)), leaf.span) if terms else layout
        operands: list[Operand] = []
        for k, operand in enumerate(leaf.operands):
            if k not in placed:
                operands.append(self._parts.scalar(operand))       # type: ignore[arg-type]
            elif leaf.op == TAKE:
                operands.append(placed[k].view)
            elif isinstance(entry, Matmul):
                operands.append(self._factor(placed[k], layout, k))
            else:
                operands.append(self._parts.own_part(placed[k], layout, result.shape) if layout.rank >= placed[k].layout.rank
                                else placed[k].view)
        results = tuple(self._parts.defined(one, layout if one.rank == layout.rank else replicated(one.rank, leaf.span))
                        for one in leaf.results)
        return [replace(leaf, operands=tuple(operands), results=results)]

    def _factor(self, placed: PartView, layout: TensorLayout, position: int) -> ArrayView:
        """Return a factor of a product: of whole leading dimensions, the rank's own part."""
        leading = layout.rank - 2
        dist = (*layout.dist[:leading], *placed.layout.dist[-2:])
        return self._parts.own_part(placed, cuts_alone(dist), placed.shape)

    def _joined(self, leaf: Apply, placed: Mapping[int, PartView], result: Array) -> TensorLayout:
        """Return the layout of an operation element by element."""
        for one in placed.values():
            offset = result.rank - one.layout.rank
            for dim, cut in enumerate(one.layout.dist):
                if isinstance(cut, Shard) and one.shape[dim] == Const(1) and result.shape[offset + dim] != Const(1):
                    raise ShardUseError(f"dimension {dim} of one position is cut, and repeated", self._parts.span, found=repr(one.layout),
                                      also=(("made here", one.layout.span),),
                                      help=f"relayout to {one.layout.with_dim(dim, Replicate())!r} first")
        layouts = [one.layout for one in placed.values()]
        found = layouts[0]
        scalars = len(leaf.operands) > len(layouts)
        if scalars and found.partial and not (leaf.op in SCALES and (leaf.op == SCALES[0] or 0 in placed)):
            found = found.other(f"`{leaf.op}` with a number")
        if len(layouts) == 1 and not scalars and leaf.op != NEGATION:
            found = found.other(f"`{leaf.op}`")
        if found.partial and leaf.op == NEGATION and any(one.op != "sum" for one in found.partial):
            found = found.other("a negation")
        if found.partial and scalars and any(one.op != "sum" for one in found.partial):
            found = found.other("a factor")
        for other in layouts[1:]:
            if leaf.op in ADDS:
                found = found.add(other)
            elif leaf.op == SCALES[0]:
                found = found.scale(other)
            elif leaf.op == SCALES[1] and found.partial:
                found = found.scale(other.other("a divisor"))
            elif leaf.op in EXTREMES and found.partial and found.partial == other.partial and \
                    all(one.op == EXTREMES[leaf.op] for one in found.partial):
                found = found._joined(other)
            else:
                found = found.join(other)
        return found

    def _reduced(self, leaf: Apply, layout: TensorLayout, dim: int, placed: PartView) -> list[Statement]:
        (result,) = leaf.results
        cut = layout.dist[dim]
        op = leaf.op
        if not isinstance(cut, Shard) and not layout.partial:
            return [replace(leaf, operands=(placed.view,), results=(self._parts.defined(result, at_line(layout, leaf.span)),))]
        reduction: Any = _REDUCES.get(op, op)      # of another one it is an error, which names the op
        made = at_line(layout.reduced(dim, reduction, keeps=True), leaf.span)
        if op not in _MEANS or not isinstance(cut, Shard):
            return [replace(leaf, operands=(placed.view,), results=(self._parts.defined(result, made),))]
        extent = placed.shape[dim]     # a mean divides by the whole extent
        assert isinstance(extent, Const)
        total = self._parts.defined(Array(next(self._parts.ids), f"{result.name}.sum", result.shape, result.dtype), made)
        part = self._parts.defined(result, made)
        return [replace(leaf, op=_MEANS[op], operands=(placed.view,), results=(total,)),
                Apply(SCALES[1], (ArrayView(total), Const(float(extent.value))), (part,), (), leaf.group, leaf.span)]

