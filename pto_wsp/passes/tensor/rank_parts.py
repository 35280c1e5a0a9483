"""Hold the part of each array of a function that a rank of a mesh has, and make views of arrays views of parts.

    x [8, 4] cut along "x" over 2 ranks: x[:, 1:3] is a view of the part [4, 4]; x[3] is refused, one rank alone has it

Of n rows over p ranks, n divided by p or not, a part has as many rows as a number or a symbol says; its bound is ceildiv(n, p). An array
with neighbours' rows (`halo`) has a margin of k rows on both sides of the rank's own: its slices of n rows are cut as the array before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pto_wsp.errors import ShardUseError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.extents import product, same, simplified
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import Const, Element, Scalar, SymbolRef, Var, print_scalar
from pto_wsp.ir.tensor_function import Array, ArrayStep, ArrayView, Extents, Flip, Insert, Refold, TensorFunction, TileCut
from pto_wsp.ir.tensor_layout import Partial, Reduction, Replicate, Shard, TensorLayout
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.effects import fresh_ids
from pto_wsp.passes.tensor.planned import WholeArray
from pto_wsp.passes.tensor.view_steps import composed
from pto_wsp.source import Span
from pto_wsp.values import dataclass

_FIRST_ID = 1 << 20      # of the symbols of a rank: a function's own count from 0


class StartOver(Exception):
    """Place the function anew: a fact about state or a loop was found that what stands before did not know."""


@dataclass(slots=True, eq=False)
class Cuts:
    """The cuts of a function: mesh axes that cut state, by array and dimension, mesh axes over which state is partial, by array, and mesh
    axes that cut loops.
    """

    state: dict[int, dict[int, Shard]] = field(default_factory=dict)
    terms: dict[int, dict[str, Partial]] = field(default_factory=dict)
    loops: dict[Var, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartView:
    """A view of a part: the layout of the view, the extents over all ranks, and the view itself."""

    layout: TensorLayout
    shape: Extents
    view: ArrayView


class RankParts:
    """The parts of a function's arrays. `span`: the line that is placed; `open`: variables of the cut loops around that line.

    `layouts`, `whole`, `local`: of each array so far, by id: its layout, its extents over all ranks, and the part of a rank; `state`: ids
    of state; `loops`: the loops by variable; `scalars`, `bounds`, `at`: as `LocalArrays` has them.
    """

    def __init__(self, function: TensorFunction, mesh: Mesh, cuts: Cuts) -> None:
        self.mesh, self.cuts, self.span = mesh, cuts, function.span
        self.sizes = dict(mesh.axes)
        self.layouts: dict[int, TensorLayout] = {}
        self.whole: dict[int, Extents] = {}
        self.local: dict[int, Array] = {}
        self.state: set[int] = set()
        self.margins: dict[int, dict[int, int]] = {}     # of arrays with neighbours' rows: k by dimension
        self.depth: dict[int, int] = {}                  # of the array: how many cut loops are around it
        self.scalars: dict[SymbolRef, Scalar] = {}
        self.bounds: dict[SymbolRef, int] = {}
        self.at = {name: SymbolRef(f"{name}_at", _FIRST_ID + k) for k, name in enumerate(self.sizes)}
        self.open: list[Var] = []
        self.loops: dict[Var, Any] = {}
        self.ids = fresh_ids(function)

    # -- arrays --------------------------------------------------------------------------------------------------------
    def defined(self, array: Array, layout: TensorLayout, margins: Mapping[int, int] | None = None) -> Array:
        """Return the part of an array of a layout. `margins`: by dimension, the neighbours' rows on both sides of the rank's own."""
        shape = [self.rows(n, cut) for n, cut in zip(map(self.scalar, array.shape), layout.dist, strict=True)]
        if margins:
            self.margins[array.id] = dict(margins)
            for dim, k in margins.items():
                shape[dim] = Const(self._full_rows(array.shape[dim], k, layout.dist[dim]))
        self.layouts[array.id], self.whole[array.id] = layout, array.shape
        self.depth[array.id] = len(self.open)
        made = self.local[array.id] = replace(array, shape=tuple(shape))
        return made

    def whole_arrays(self) -> dict[int, WholeArray]:
        """Return the arrays over all ranks whose extents are numbers, by id."""
        found = {}
        for one, shape in self.whole.items():
            if all(isinstance(n, Const) for n in shape):
                layout, margins = self.layouts[one], self.margins.get(one, {})
                sizes = [int(n.value) for n in shape if isinstance(n, Const)]
                for dim, k in margins.items():
                    cut = layout.dist[dim]
                    assert isinstance(cut, Shard)
                    sizes[dim] = self._full_rows(shape[dim], k, cut) * self.sizes[str(cut.axis)]
                found[one] = WholeArray(tuple(sizes), layout)
        return found

    def _full_rows(self, extent: Scalar, k: int, cut: Replicate | Shard) -> int:
        """Return the rows of a full shard with its neighbours' rows, of an extent with k rows beyond each end."""
        assert isinstance(extent, Const) and isinstance(cut, Shard)
        return -(-(int(extent.value) - 2 * k) // self.sizes[str(cut.axis)]) + 2 * k

    def rows(self, extent: Scalar, cut: Replicate | Shard) -> Scalar:
        """Return how many of the positions of a dimension a rank has."""
        if not isinstance(cut, Shard):
            return extent
        p = self.sizes[str(cut.axis)]
        if not isinstance(extent, Const):
            raise ShardUseError("a dimension is cut whose size only a run knows", self.span, expected="a number",
                                found=print_scalar(extent))
        n = int(extent.value)
        if n % p == 0:
            return Const(n // p)
        most = -(-n // p)
        symbol = SymbolRef(f"{cut.axis}_rows_of_{n}", _FIRST_ID + 100 + n * len(self.sizes) + list(self.sizes).index(str(cut.axis)))
        at = self.at[str(cut.axis)]       # as the part of a Tensor has it: extents are equal where they are written alike
        stop, start = (s.minimum(s.mul(one, Const(most)), extent) for one in (s.add(at, Const(1)), at))
        self.scalars[symbol] = s.minimum(s.sub(stop, start), Const(most))
        self.bounds[symbol] = max(most, 2)      # an axis of one position at most counts as one of one, and a rank may have none
        return symbol

    def _start(self, extent: Scalar, axis: str) -> Scalar:
        """Return the first of the positions of a dimension that a rank has."""
        assert isinstance(extent, Const)
        n, p = int(extent.value), self.sizes[axis]
        first = s.mul(self.at[axis], Const(-(-n // p)))
        return first if n % p == 0 else s.minimum(first, extent)

    def scalar(self, node: Scalar) -> Scalar:
        """Return a scalar on a rank: the variable of a cut loop counts from the rank's first position."""
        for leaf in s.leaves(node):
            if isinstance(leaf, Element):
                self._check_element(leaf)
        values: dict[Scalar, Scalar] = {var: s.add(self._start(self.loops[var].stop, self.cuts.loops[var]), var) for var in self.open}
        return s.substitute(node, values.get) if values else node

    def _check_element(self, element: Element) -> None:
        layout = self.layouts.get(element.tensor.id)
        if layout is not None and not layout.is_replicated:
            raise ShardUseError(f"an element of `{element.tensor.name}` is read as a number, and ranks hold parts of it", self.span,
                              expected="a replicated tensor", found=repr(layout), also=(("made here", layout.span),),
                              help="allgather or allreduce it first")

    # -- views ---------------------------------------------------------------------------------------------------------
    def view(self, view: ArrayView, *, writes: bool = False, updates: Reduction | None = None, margins: bool = False) -> PartView:
        """Return a view of a part. `writes`: it is written, so a loop that cuts must pick its place.

        `updates`: how an iteration combines a value with the view, which is then a term on each rank that runs the loop; the layout is
        that of one iteration, without these terms. `margins`: the neighbours' rows may be in the view.
        """
        layout, shape = self.layouts[view.array.id], list(self.whole[view.array.id])
        steps: list[ArrayStep] = []
        dims: list[int | None] = list(range(len(shape)))        # the dimension of the array that each of the view is
        picked: set[Var] = set()
        beside = dict(self.margins.get(view.array.id, {}))      # the margins that no slice has taken off
        for step in view.steps:
            match step:
                case Pick(dim, index):
                    layout, own = self._picked(view, layout, shape, dims, dim, index, picked, writes)
                    steps.append(Pick(dim, own))
                    del shape[dim], dims[dim]
                case Cut(dim, start, stop, by):
                    of = dims[dim]
                    layout, made = self._cut(layout, shape, step, 0 if of is None else beside.pop(of, 0), view.array.name)
                    steps.append(made)
                    span = s.sub(stop, start)
                    shape[dim] = simplified(span if by == 1 else s.ceil_div(span, Const(by)))
                    dims[dim] = dims[dim] if start == Const(0) and by == 1 else None
                case Permute(order):
                    layout = layout.permuted(order)
                    steps.append(step)
                    shape, dims = [shape[k] for k in order], [dims[k] for k in order]
                case Insert(dim):
                    layout = with_dist(layout, (*layout.dist[:dim], Replicate(), *layout.dist[dim:]))
                    steps.append(step)
                    shape.insert(dim, Const(1))
                    dims.insert(dim, None)
                case Flip(dim):
                    layout = layout.along(dim, "a reversal") if isinstance(layout.dist[dim], Shard) else layout
                    steps.append(step)
                case Refold(extents):
                    self._check_margins(view, beside)
                    layout = self._refolded(layout, shape, extents)
                    shape = list(extents)
                    dims = [None] * len(shape)
                    steps.append(Refold(tuple(self.rows(self.scalar(n), cut) for n, cut in zip(extents, layout.dist, strict=True))))
                case TileCut():
                    raise AssertionError("tiles are cut behind this pass")
        if not margins:
            self._check_margins(view, beside)
        for var in self.open:
            axis = self.cuts.loops[var]
            if updates is not None and layout.reduction_of(axis) == updates:
                layout = layout.with_axis(axis)
                continue
            if writes and var not in picked and self.depth[view.array.id] < self.open.index(var) + 1:
                if updates is not None and view.array.id in self.state:
                    self.hold_terms(view.array.id, [Partial(axis, updates)])
                raise ShardUseError(f"`{view.array.name}` is written in a loop whose iterations are on ranks along {axis!r}", self.span,
                                  expected=f"a place that the loop picks, {view.array.name}[{var.name}] = ..., or state made before the "
                                  f"loop that each iteration adds to: {view.array.name} += ...",
                                  found=repr(self.layouts[view.array.id]), help="reduce over the loop's dimension by an operation")
            if axis in layout.axes:
                if layout.reduction_of(axis) is not None:
                    raise ShardUseError(f"`{view.array.name}` is read in the loop over {var.name}, whose iterations add terms to it on "
                                        f"ranks along {axis!r}", self.span, expected="updates alone: acc += x, acc[:] = np.maximum(acc, x)",
                                        found=repr(layout), help="read it behind the loop, after an allreduce")
                raise ShardUseError(f"`{view.array.name}` is cut along {axis!r}, and so is the loop over {var.name}", self.span,
                                  expected="a dimension that the loop picks", found=repr(layout))
        return PartView(layout, tuple(shape), composed(ArrayView(self.local[view.array.id], tuple(steps))))

    def _picked(self, view: ArrayView, layout: TensorLayout, shape: Sequence[Scalar], dims: Sequence[int | None], dim: int,
                index: Scalar, picked: set[Var], writes: bool) -> tuple[TensorLayout, Scalar]:
        cut = layout.dist[dim]
        rest = with_dist(layout, (*layout.dist[:dim], *layout.dist[dim + 1:]))
        if isinstance(index, Var) and index in self.cuts.loops and same(self.loops[index].stop, shape[dim]):
            axis = self.cuts.loops[index]
            if cut == Shard(axis):
                picked.add(index)
                return rest, index
            if writes and view.array.id in self.state and dims[dim] is not None and cut == Replicate():
                self.cut_state(view.array, dims[dim], Shard(axis))
        if not isinstance(cut, Shard):
            return rest, self.scalar(index)
        if isinstance(index, Var) and index not in self.cuts.loops:
            loop = self.loops.get(index)
            if loop is not None and loop.start == Const(0) and loop.step == Const(1) and same(loop.stop, shape[dim]):
                self.cuts.loops[index] = str(cut.axis)
                raise StartOver
        return layout.indexed(dim), index

    def _check_margins(self, view: ArrayView, beside: Mapping[int, int]) -> None:
        """Refuse a view that has neighbours' rows: they are on two ranks.

        Raises: M108.
        """
        for dim, k in beside.items():
            n = simplified(s.sub(self.whole[view.array.id][dim], Const(2 * k)))
            raise ShardUseError(f"`{view.array.name}` has rows of the neighbours beside each shard of dimension {dim}", self.span,
                                expected=_slices(view.array.name, n, k), also=(("made here", self.layouts[view.array.id].span),))

    def _cut(self, layout: TensorLayout, shape: Sequence[Scalar], step: Cut, margin: int, name: str) -> tuple[TensorLayout, ArrayStep]:
        """Return the layout of a slice of an array, and the slice of a part. `margin`: the neighbours' rows beside each shard."""
        cut, extent = layout.dist[step.dim], shape[step.dim]
        if margin:
            n = simplified(s.sub(extent, Const(2 * margin)))
            if not (isinstance(step.start, Const) and step.step == 1 and same(s.sub(step.stop, step.start), n)):
                raise ShardUseError("a slice across shards with rows of the neighbours beside each", self.span,
                                    expected=_slices(name, n, margin), found=f"{print_scalar(step.start)}:{print_scalar(step.stop)}" +
                                    ("" if step.step == 1 else f":{step.step}"), also=(("made here", layout.span),))
            return layout, Cut(step.dim, step.start, simplified(s.add(step.start, self.rows(n, cut))))
        if not isinstance(cut, Shard):
            return layout, Cut(step.dim, self.scalar(step.start), self.scalar(step.stop), step.step)
        if not (isinstance(step.start, Const) and isinstance(step.stop, Const) and isinstance(extent, Const) and step.step == 1):
            layout.indexed(step.dim)      # raises: a part at a scalar's place lies on any rank
            raise AssertionError("unreachable")
        layout = layout.sliced(step.dim, int(step.start.value), int(step.stop.value), int(extent.value), self.mesh)
        return layout, Cut(step.dim, Const(0), self.rows(step.stop, cut))

    def _refolded(self, layout: TensorLayout, shape: Sequence[Scalar], wanted: Extents) -> TensorLayout:
        """Return the layout of the elements in another shape: a cut stays with the first of the dimensions that its own becomes."""
        dist: list[Replicate | Shard] = [Replicate()] * len(wanted)
        for old, new in _matched(shape, wanted):
            for place, dim in enumerate(old):
                cut = layout.dist[dim]
                if not isinstance(cut, Shard):
                    continue
                p = self.sizes[str(cut.axis)]
                first = next((k for k in new if wanted[k] != Const(1)), None)
                sizes = [n for n in (shape[dim], wanted[first] if first is not None else None)]
                whole = len(old) == len(new) == 1 or all(isinstance(n, Const) and int(n.value) % p == 0 for n in sizes)
                leads = all(shape[k] == Const(1) for k in old[:place])
                if first is None or not whole or not leads:
                    raise ShardUseError(f"dimension {dim} is cut, and a reshape takes it apart", self.span,
                                      expected="a shape whose shards are rows of the same ranks", also=(("made here", layout.span),),
                                      found=f"{layout!r} of [{', '.join(map(print_scalar, shape))}] as "
                                            f"[{', '.join(map(print_scalar, wanted))}]",
                                      help=f"relayout to {layout.with_dim(dim, Replicate())!r} first")
                dist[first] = cut
        return with_dist(layout, dist)

    def hold_terms(self, array: int, terms: Sequence[Partial]) -> None:
        """Make state partial over axes, and place the function anew; nothing for state that is partial over them already."""
        held = self.cuts.terms.setdefault(array, {})
        fresh = [one for one in terms if str(one.axis) not in held and one.axis not in self.layouts[array].axes]
        if fresh:
            held.update({str(one.axis): one for one in fresh})
            raise StartOver

    def cut_state(self, array: Array, dim: int | None, cut: Shard) -> None:
        """Make a dimension of state one that is cut, and place the function anew."""
        assert dim is not None
        layout = self.layouts[array.id]
        if layout.dist[dim] != Replicate() or cut.axis in layout.axes:
            return
        self.cuts.state.setdefault(array.id, {})[dim] = cut
        raise StartOver

    def own_part(self, placed: PartView, layout: TensorLayout, shape: Extents) -> ArrayView:
        """Return a view that is joined with parts of a layout: of a whole dimension, the rank's own part."""
        view, offset = placed.view, layout.rank - placed.layout.rank
        steps: list[ArrayStep] = []
        for dim, (extent, cut) in enumerate(zip(placed.shape, placed.layout.dist, strict=True)):
            wanted = layout.dist[offset + dim]
            if cut == wanted or not isinstance(wanted, Shard) or extent == Const(1):
                continue
            start = self._start(extent, str(wanted.axis))
            rows = self.rows(extent, wanted)
            if self.sizes[str(wanted.axis)] > 1:
                steps.append(Cut(dim, start, simplified(s.add(start, rows))))
        return composed(view.then(*steps)) if steps else view

    def dim_of_state(self, view: ArrayView, dim: int) -> int | None:
        """Return the dimension of state that a dimension of a view of it is, from the first position on; None where there is none."""
        if view.array.id not in self.state:
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

    def axis(self, axis: object) -> str:
        """Return the name of an axis of the mesh, given by its name or its number."""
        return self.mesh.axes[self.mesh.axis(axis)][0]


def _slices(name: str, n: Scalar, margin: int) -> str:
    name = name if name.isidentifier() else "h"
    return f"slices of {print_scalar(n)} rows: {name}[j:j + {print_scalar(n)}], j a number from 0 to {2 * margin}"


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


def cuts_alone(dist: Sequence[Replicate | Shard]) -> TensorLayout:
    """Return cuts as a layout, of which only the cuts are asked."""
    seen: set[object] = set()
    kept: list[Replicate | Shard] = []
    for cut in dist:
        kept.append(Replicate() if isinstance(cut, Shard) and cut.axis in seen else cut)
        seen |= {cut.axis} if isinstance(cut, Shard) else set()
    return TensorLayout(tuple(kept))


def with_dist(layout: TensorLayout, dist: Sequence[Replicate | Shard]) -> TensorLayout:
    """Return a layout with other cuts, made at the same line."""
    made = TensorLayout(tuple(dist), partial=layout.partial)
    made.span = layout.span
    return made


def at_line(layout: TensorLayout, span: Span) -> TensorLayout:
    """Return a layout that was made at a line."""
    made = TensorLayout(layout.dist, layout.mem, partial=layout.partial)
    made.span = span
    return made


def replicated(rank: int, span: Span) -> TensorLayout:
    """Return the layout of a tensor that every rank has whole, made at a line."""
    return at_line(TensorLayout.replicated(rank), span)
