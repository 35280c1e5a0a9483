"""Place the collectives of a function: on a mesh the layouts that each starts from and leads to, without a mesh what each is of one rank.

    total = move(y)                  y: partial over "x"          total: replicated, by an allreduce of the program
    total = move(y)                  without a mesh               y itself
    h = move(x)                      a halo of 1 without a mesh   x between two rows of zeros
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pto_wsp.errors import FunctionCollectiveError, ShardUseError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.scalar import Const, Element, Scalar, print_scalar
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body, Insert, Item, Make, Put, Statement, TensorFunction
from pto_wsp.ir.tensor_layout import Replicate, Shard, TensorLayout
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.ops.tensors import MOVE
from pto_wsp.passes.tensor.effects import with_views
from pto_wsp.passes.tensor.rank_parts import PartView, RankParts, at_line, with_dist
from pto_wsp.passes.tensor.substitute import with_scalars
from pto_wsp.passes.tensor.view_steps import composed


def without_moves(function: TensorFunction) -> TensorFunction:
    """Return a function for one rank: a move is its operand, or a copy of an operand that is written later; a halo adds zeros."""
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
                attrs = dict(leaf.attrs)
                if attrs["move"] == "halo":
                    dim, k = attrs["dim"], Const(attrs["k"])
                    inside = ArrayView(result, (Cut(dim, k, simplified(s.sub(result.shape[dim], k))),))
                    found += [flow.Do(Make(result, 0, leaf.span)), flow.Do(Put(inside, operand, span=leaf.span))]
                elif operand.array.id in written:
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


def placed_move(parts: RankParts, leaf: Apply) -> list[Statement]:
    """Return a collective on parts, with what makes its operand an array of parts.

    Raises: M108 for a tensor of another layout; M109 in a loop over shards, and for a shape that only a run knows; M102 for an axis that
    the mesh does not have.
    """
    (operand,), (result,) = leaf.operands, leaf.results
    assert isinstance(operand, ArrayView)
    attrs = dict(leaf.attrs)
    what = str(attrs["move"])
    if parts.open:
        raise FunctionCollectiveError(f"{what} in a loop whose iterations are on different ranks", parts.span,
                              found=f"the loop over {parts.open[-1].name}, along {parts.cuts.loops[parts.open[-1]]!r}",
                              help="keep the parts in a tensor made before the loop, and move them behind it")
    placed = parts.view(operand, margins=what == "halo" and not operand.steps)
    if not placed.shape:        # ranks move rows: of a number, one row of one
        row = Array(next(parts.ids), f"{result.name}.row", (Const(1),), result.dtype)
        moved = Array(next(parts.ids), result.name, (Const(1),), result.dtype)
        parts.defined(row, with_dist(placed.layout, (Replicate(),)))
        rows = placed_move(parts, replace(leaf, operands=(ArrayView(row),), results=(moved,)))
        number = parts.defined(result, at_line(TensorLayout((), partial=parts.layouts[moved.id].partial), leaf.span))
        return [Make(row, None, leaf.span), Put(ArrayView(row), placed.view.then(Insert(0)), span=leaf.span), *rows,
                Make(number, None, leaf.span), Put(ArrayView(number), ArrayView(moved, (Pick(0, Const(0)),)), span=leaf.span)]
    if not all(isinstance(n, Const) for n in placed.shape) or Const(0) in placed.shape:
        raise FunctionCollectiveError(f"{what} of a tensor whose shape only a run knows, or without elements", parts.span,
                              expected="a shape of numbers", found=f"[{', '.join(map(print_scalar, placed.shape))}]")
    if what == "halo":
        return _placed_halo(parts, leaf, placed, operand)
    if what == "broadcast":
        return _placed_broadcast(parts, leaf, placed, operand)
    layout = at_line(_target(parts, what, attrs, placed.layout, operand), leaf.span)
    if (layout.dist, layout.partial) == (placed.layout.dist, placed.layout.partial):       # it is there already
        made = parts.defined(result, placed.layout)
        return [Make(made, None, leaf.span), Put(ArrayView(made), placed.view, span=leaf.span)]
    before, source = _whole_part(parts, leaf, placed)
    axis = [one for one in placed.layout.axes if layout.dim_of(one) != placed.layout.dim_of(one)
            or layout.reduction_of(one) != placed.layout.reduction_of(one)]
    if what != "relayout":
        attrs["axis"] = str(axis[0])
    return [*before, replace(leaf, operands=(ArrayView(source),), results=(parts.defined(result, layout),), attrs=tuple(attrs.items()))]


def _whole_part(parts: RankParts, leaf: Apply, placed: PartView) -> tuple[list[Statement], Array]:
    """Return the array of parts of a collective's operand, behind the statements that make it: of a view, they make a copy."""
    if not placed.view.steps:
        return [], placed.view.array
    (result,) = leaf.results
    made = parts.defined(Array(next(parts.ids), f"{result.name}.part", placed.shape, result.dtype), placed.layout)
    return [Make(made, None, leaf.span), Put(ArrayView(made), placed.view, span=leaf.span)], made


def _placed_halo(parts: RankParts, leaf: Apply, placed: PartView, operand: ArrayView) -> list[Statement]:
    attrs = dict(leaf.attrs)
    dim, k = attrs["dim"], attrs["k"]
    cut, n = placed.layout.dist[dim], placed.shape[dim]
    given = None if attrs.get("axis") is None else parts.axis(attrs["axis"])
    if not isinstance(cut, Shard) or given not in (None, cut.axis):
        raise ShardUseError(f"halo: dimension {dim} of `{operand.array.name}` is " +
                            (f"cut along {cut.axis!r}" if isinstance(cut, Shard) else "not cut, so there are no neighbours"), parts.span,
                            expected=f"a dimension that {'an axis' if given is None else repr(given)} cuts", found=repr(placed.layout),
                            also=(("made here", placed.layout.span),), help=None if isinstance(cut, Shard) else
                            "np.pad puts zeros beside a tensor that every rank has whole")
    assert isinstance(n, Const)
    rows = -(-int(n.value) // parts.sizes[str(cut.axis)])
    if dim in parts.margins.get(operand.array.id, {}):
        raise ShardUseError(f"halo: dimension {dim} of `{operand.array.name}` has rows of the neighbours already", parts.span,
                            help="one halo of as many rows as the slices need")
    if k > rows:
        raise FunctionCollectiveError("halo: a neighbour does not have so many rows", parts.span,
                                      expected=f"at most {rows}, the rows of a shard", found=f"{k}",
                                      help="allgather(t) gives every rank all rows")
    before, source = _whole_part(parts, leaf, placed)
    margins = {**parts.margins.get(operand.array.id, {}), dim: k}
    result = parts.defined(leaf.results[0], at_line(placed.layout, leaf.span), margins)
    attrs["axis"] = str(cut.axis)
    return [*before, replace(leaf, operands=(ArrayView(source),), results=(result,), attrs=tuple(attrs.items()))]


def _placed_broadcast(parts: RankParts, leaf: Apply, placed: PartView, operand: ArrayView) -> list[Statement]:
    attrs = dict(leaf.attrs)
    free = [name for name, _ in parts.mesh.axes if name not in placed.layout.axes]
    axis = parts.axis(attrs["axis"]) if attrs.get("axis") is not None else free[0] if len(free) == 1 else None
    if axis not in free:
        raise ShardUseError("broadcast: which mesh axis?" if axis is None and free else
                            f"broadcast: ranks along {axis or 'every axis'} have parts or terms of `{operand.array.name}`, not copies",
                            parts.span, found=repr(placed.layout),
                            expected=" or ".join(map(repr, free)) or "a tensor that ranks have whole",
                            also=(("made here", placed.layout.span),), help=None if axis is None and free else
                            "allgather gives every rank all parts, allreduce the sum of the terms")
    if attrs["root"] >= parts.sizes[axis]:
        raise FunctionCollectiveError("broadcast: there is no such position", parts.span, expected=f"a number below {parts.sizes[axis]}",
                                    found=f"{attrs['root']}")
    before, source = _whole_part(parts, leaf, placed)
    result = parts.defined(leaf.results[0], at_line(placed.layout, leaf.span))
    return [*before, replace(leaf, operands=(ArrayView(source),), results=(result,), attrs=tuple({**attrs, "axis": axis}.items()))]


def _target(parts: RankParts, what: str, attrs: Mapping[str, Any], layout: TensorLayout, operand: ArrayView) -> TensorLayout:
    """Return the layout that a collective leads to.

    Raises: M108 where it does not start from this one, M102 for an axis that the mesh does not have.
    """
    if what == "relayout":
        dist = tuple(Replicate() if cut == "" else Shard(parts.axis(cut)) for cut in attrs["cuts"])
        return TensorLayout(dist or layout.dist)
    partial = what in ("allreduce", "reduce_scatter")
    fitting = [str(one.axis) for one in layout.partial] if partial else [str(one.axis) for one in layout.dist if isinstance(one, Shard)]
    given = attrs.get("axis")
    axis = parts.axis(given) if given is not None else fitting[0] if len(fitting) == 1 else None
    if axis not in fitting:
        is_so = f"{'partial' if partial else 'cut'} along"
        problem = f"`{operand.array.name}` is {is_so} no axis" if not fitting else "which mesh axis?" if given is None else \
            f"`{operand.array.name}` is not {is_so} {axis!r}"
        raise ShardUseError(f"{what}: {problem}", parts.span, found=repr(layout), also=(("made here", layout.span),),
                          expected=f"a tensor that is {is_so} an axis" if not fitting else " or ".join(map(repr, fitting)))
    return layout.with_axis(axis, dim=attrs.get("dim"))
