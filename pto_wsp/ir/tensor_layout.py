"""Define `TensorLayout`: which part of a tensor each rank of a mesh holds.

A dimension is replicated or cut into shards along one axis of the mesh. Over an axis that cuts nothing, a tensor may be partial: the whole
is the sum (or maximum, or minimum) of what the ranks hold. Layouts flow through operations by the rules below, and nothing moves by itself:
where two layouts do not fit, the error names both and the `relayout` that mends it.

>>> rows, cols = TensorLayout.sharded(0, 2, "x"), TensorLayout.sharded(1, 2, "x")
>>> cols.matmul(rows)                                    # the inner dimension is cut alike on both sides
TensorLayout(R, R; Partial('x', 'sum'))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from pto_wsp.calls import user_calls
from pto_wsp.errors import LayoutError, LayoutShapeError
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.symbolic import Symbolic, ceildiv, minimum
from pto_wsp.source import UNKNOWN, Span, here

MeshAxis: TypeAlias = "str | int"
Reduction: TypeAlias = Literal["sum", "max", "min"]
_REDUCTIONS: tuple[str, ...] = get_args(Reduction)
_OWN = ("__eq__", "__hash__", "__repr__")


class AxisUse:
    """Base of Replicate, Shard and Partial: two of a class are equal if their texts are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@user_calls(leave_out=_OWN)
class Replicate(AxisUse):
    """A dimension of which every rank stores all rows."""

    __slots__ = ()

    def __init__(self) -> None:
        """Return the dimension."""

    def __repr__(self) -> str:
        return "R"


@user_calls(leave_out=_OWN)
class Shard(AxisUse):
    """A dimension cut along an axis of the mesh: position `c` holds the rows from `c * ceildiv(n, p)` on, the last ones fewer or none."""

    __slots__ = ("axis",)

    def __init__(self, axis: MeshAxis) -> None:
        """Return a dimension that the axis of a name, or of a number, cuts.

        Raises: M105 for what is neither.
        """
        self.axis = _check_axis(axis)

    def __repr__(self) -> str:
        return f"S({self.axis!r})"


@user_calls(leave_out=_OWN)
class Partial(AxisUse):
    """Over an axis of the mesh, the tensor is the reduction of what the ranks hold: sum, max or min."""

    __slots__ = ("axis", "op")

    def __init__(self, axis: MeshAxis, op: Reduction = "sum") -> None:
        """Return the reduction over the axis of a name, or of a number.

        Raises: M105 for what is neither, and for another reduction.
        """
        if op not in _REDUCTIONS:
            raise LayoutShapeError("a tensor is partial by a reduction", here(), expected=", ".join(_REDUCTIONS), found=f"{op!r:.60}")
        self.axis, self.op = _check_axis(axis), op

    def __repr__(self) -> str:
        return f"Partial({self.axis!r}, {self.op!r})"


@user_calls(leave_out=_OWN)
class TensorLayout:
    """Which part of a tensor each rank holds: `dist` by dimension, `partial` over the mesh axes that hold terms of a reduction.

    `mem`: the memory layout, None for that of the array. `span`: where the layout was made.
    """

    __slots__ = ("dist", "mem", "partial", "span")

    def __init__(self, dist: Sequence[Replicate | Shard], mem: Layout | None = None, *, partial: Sequence[Partial] = ()) -> None:
        """Make a layout of a `Replicate` or `Shard` for each dimension.

        Raises: M101 for anything else, and for a mesh axis that is used twice.
        """
        if not isinstance(dist, list | tuple) or not all(isinstance(one, Replicate | Shard) for one in dist):
            raise LayoutShapeError("a layout says of each dimension whether it is cut", here(), found=f"{dist!r:.100}",
                              expected="a Replicate() or Shard(axis) for each", help="TensorLayout.sharded(dim=0, rank=2, mesh_axis=\"x\")")
        if not all(isinstance(one, Partial) for one in partial):
            raise LayoutShapeError("a tensor is partial over axes of the mesh", here(), found=f"{partial!r:.100}",
                              expected="Partial(axis, op) for each")
        self.dist, self.mem = tuple(dist), mem
        self.partial = tuple(sorted(partial, key=lambda one: str(one.axis)))
        self.span: Span = here()
        twice = next((axis for k, axis in enumerate(self.axes) if axis in self.axes[:k]), None)
        if twice is not None:
            raise LayoutShapeError(f"a layout uses mesh axis {twice!r} twice", here(), found=repr(self),
                              help="an axis cuts one dimension, or holds partial results, or neither")

    @staticmethod
    def replicated(rank: int) -> TensorLayout:
        """Return the layout of a tensor of `rank` dimensions that every rank holds whole."""
        return TensorLayout((Replicate(),) * _check_rank(rank))

    @staticmethod
    def sharded(dim: int, rank: int, mesh_axis: MeshAxis = 0) -> TensorLayout:
        """Return the layout of a tensor of `rank` dimensions whose dimension `dim` is cut along `mesh_axis`.

        Raises: M101 for a dimension that there is not.
        """
        whole = TensorLayout.replicated(rank)
        return whole._with({_check_dim(dim, rank): Shard(mesh_axis)})

    @staticmethod
    def partial_of(rank: int, mesh_axis: MeshAxis = 0, op: Reduction = "sum") -> TensorLayout:
        """Return the layout of a tensor of `rank` dimensions of which every rank along `mesh_axis` holds a term."""
        return TensorLayout((Replicate(),) * _check_rank(rank), partial=(Partial(mesh_axis, op),))

    # -- what it says --------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dist)

    @property
    def axes(self) -> tuple[MeshAxis, ...]:
        """The mesh axes that cut a dimension or hold partial results."""
        return (*(one.axis for one in self.dist if isinstance(one, Shard)), *(one.axis for one in self.partial))

    @property
    def is_replicated(self) -> bool:
        """Whether every rank holds the whole tensor."""
        return not self.axes

    def dim_of(self, axis: MeshAxis) -> int | None:
        """Return the dimension that a mesh axis cuts; None for none."""
        _check_axis(axis)
        return next((dim for dim, one in enumerate(self.dist) if one == Shard(axis)), None)

    def reduction_of(self, axis: MeshAxis) -> Reduction | None:
        """Return the reduction over a mesh axis whose terms the ranks hold; None for none."""
        _check_axis(axis)
        return next((one.op for one in self.partial if one.axis == axis), None)

    def named_on(self, mesh: Mesh) -> TensorLayout:
        """Return the layout with the names of a mesh for axes that were given by number.

        Raises: M102 for an axis that the mesh does not have; M101 for an axis that is then used twice.
        """
        def named(axis: MeshAxis) -> str:
            return mesh.axes[mesh.axis(axis)][0]

        return self._like([Shard(named(one.axis)) if isinstance(one, Shard) else one for one in self.dist],
                          [Partial(named(one.axis), one.op) for one in self.partial])

    def with_axis(self, axis: MeshAxis, *, dim: int | None = None) -> TensorLayout:
        """Return the layout in which a mesh axis cuts dimension `dim`, or nothing, and holds no partial results.

        Raises: M105 for what is no axis, and for a dimension that there is not; M101 for one that another axis cuts.
        """
        _check_axis(axis)
        dist: list[Replicate | Shard] = [Replicate() if one == Shard(axis) else one for one in self.dist]
        if dim is not None:
            if dist[_check_dim(dim, self.rank)] != Replicate():
                raise LayoutError(f"dimension {dim} is cut already", here(), found=repr(self), expected="a dimension that is replicated")
            dist[dim] = Shard(axis)
        return self._like(dist, [one for one in self.partial if one.axis != axis])

    # -- rules ---------------------------------------------------------------------------------------------------------

    def join(self, other: TensorLayout) -> TensorLayout:
        """Return the layout of an elementwise operation on two tensors of one shape; the tensor with fewer dimensions has the last of them.

        Raises: M101 where a dimension is cut along different axes, where an axis would cut two dimensions, and for partial tensors:
        those are added and subtracted by `add`.
        """
        self._refuse_partial("an elementwise operation")
        other._refuse_partial("an elementwise operation")
        return self._joined(other)

    def add(self, other: TensorLayout) -> TensorLayout:
        """Return the layout of a sum or difference: partial sums of the same axes stay partial sums.

        Raises: M101 as `join`, and for a partial sum with anything but an equal one.
        """
        if (self.partial or other.partial) and (self.partial != other.partial or any(one.op != "sum" for one in self.partial)):
            raise _mismatch("a partial tensor is added to another one", self, other,
                            "partial sums over the same axes, or none", "allreduce the partial one first")
        return self._joined(other)

    def scale(self, factor: TensorLayout) -> TensorLayout:
        """Return the layout of a product with a factor: a partial sum takes a replicated factor and stays partial.

        Raises: M101 as `join`, and for a partial tensor with a factor that is not replicated.
        """
        if self.partial:
            if not factor.is_replicated or any(one.op != "sum" for one in self.partial):
                raise _mismatch("a partial tensor is multiplied", self, factor, "a partial sum and a replicated factor",
                                "allreduce the partial one first")
            return self._joined(factor)
        if factor.partial:
            return factor.scale(self)
        return self.join(factor)

    def matmul(self, other: TensorLayout) -> TensorLayout:
        """Return the layout of a matrix product: rows and columns keep their cuts, an inner dimension cut alike gives partial sums.

        A replicated inner dimension takes a partial sum on one side, if the other side is replicated.
        Raises: M101 for fewer than two dimensions, for an inner dimension that is not cut alike, for an axis that would be used twice.
        """
        if self.rank < 2 or other.rank < 2:
            raise LayoutShapeError("a matrix product takes two dimensions", here(), found=f"{self!r} and {other!r}")
        if (self.partial or other.partial) and not (self.is_replicated or other.is_replicated):
            raise _mismatch("a partial tensor is multiplied", self, other, "a replicated operand on the other side",
                            "allreduce the partial one first")
        inner, against = self.dist[-1], other.dist[-2]
        if inner != against:
            raise _mismatch("the inner dimensions of a product are cut differently", self, other, "both cut along one axis, or neither",
                            f"relayout the second operand to {other.with_dim(-2, inner)!r}")
        leading = self._leading()._joined(other._leading())
        sums = (Partial(inner.axis),) if isinstance(inner, Shard) else ()
        return _made((*leading.dist, self.dist[-2], other.dist[-1]), (*self.partial, *other.partial, *sums), self, other)

    def reduced(self, dim: int, op: Reduction = "sum", *, keeps: bool = False) -> TensorLayout:
        """Return the layout of a reduction of one dimension; over a cut dimension the result is partial.

        A mean divides by the whole extent, so it is a sum here. `keeps`: the dimension stays, with one element.
        Raises: M101 for a dimension that there is not, for a reduction that does not combine, and for partial tensors of another one.
        """
        at = _check_dim(dim, self.rank)
        if op not in _REDUCTIONS:
            raise LayoutError(f"`{op}` along a cut dimension has no partial result" if isinstance(self.dist[at], Shard) else
                              "this is no reduction of a layout", here(), found=f"{op!r:.60} of {self!r}", expected=", ".join(_REDUCTIONS),
                              help=f"relayout to {self.with_dim(at, Replicate())!r} first", also=made_at(self, "made here"))
        if any(one.op != op for one in self.partial):
            raise LayoutError(f"a partial {self.partial[0].op} is reduced by {op}", here(), found=repr(self), help="allreduce it first",
                              also=made_at(self, "made here"))
        cut = self.dist[at]
        rest = (*self.dist[:at], *((Replicate(),) if keeps else ()), *self.dist[at + 1:])
        return self._like(rest, (*self.partial, *((Partial(cut.axis, op),) if isinstance(cut, Shard) else ())))

    def along(self, dim: int, what: str) -> TensorLayout:
        """Return the layout itself, for an operation that needs a whole dimension: sort, argmax, topk, softmax, a scan.

        Raises: M101 if the dimension is cut, and for partial tensors.
        """
        at = _check_dim(dim, self.rank)
        self._refuse_partial(what)
        if isinstance(self.dist[at], Shard):
            raise LayoutError(f"{what} along dimension {at}, which is cut", here(), expected="a dimension that every rank holds whole",
                              found=repr(self), help=f"relayout to {self.with_dim(at, Replicate())!r} first",
                              also=made_at(self, "made here"))
        return self

    def other(self, what: object) -> TensorLayout:
        """Return the layout itself, for an operation on one tensor that does not pass through sums: a cast, a comparison, silu, a store.

        Raises: M101 for partial tensors.
        """
        self._refuse_partial(what)
        return self

    def indexed(self, dim: int) -> TensorLayout:
        """Return the layout of a view that picks one position of a dimension.

        Raises: M101 if the dimension is cut: only one rank has the position.
        """
        at = _check_dim(dim, self.rank)
        if isinstance(self.dist[at], Shard):
            raise LayoutError(f"dimension {at} is indexed, and it is cut", here(), found=repr(self),
                              expected="a dimension that every rank holds whole", also=made_at(self, "made here"),
                              help=f"index a rank's part, A.on(r)[...], or relayout to {self.with_dim(at, Replicate())!r} first")
        return self._like((*self.dist[:at], *self.dist[at + 1:]), self.partial)

    def sliced(self, dim: int, start: int, stop: int, extent: int, mesh: Mesh) -> TensorLayout:
        """Return the layout of a view of the positions start .. stop - 1 of a dimension of `extent` positions.

        Raises: M101 for a part of a cut dimension: its shards would lie on other ranks than the layout says.
        """
        at = _check_dim(dim, self.rank)
        cut = self.dist[at]
        if not isinstance(cut, Shard) or (start, stop) == (0, extent):
            return self
        n = mesh.shape[mesh.axis(cut.axis)]
        if start == 0 and _ceil(stop, n) == _ceil(extent, n):     # the same ranks hold the same rows, the last ones fewer
            return self
        raise LayoutError(f"dimension {at} is cut, and the slice {start}:{stop} is not aligned with its shards", here(),
                          expected=f"shards of {_ceil(stop - start, n)} rows from row 0 on, as the slice's own layout has them",
                          found=f"shards of {_ceil(extent, n)} rows", also=made_at(self, "made here"),
                          help=f"slice a rank's part, A.on(r)[...], or relayout to {self.with_dim(at, Replicate())!r} first")

    def permuted(self, order: Sequence[int]) -> TensorLayout:
        """Return the layout of a view with its dimensions in another order.

        Raises: M101 for what is no order of the dimensions.
        """
        if sorted(order) != list(range(self.rank)):
            raise LayoutShapeError("this is no order of the dimensions", here(), expected=f"the numbers 0 .. {self.rank - 1}",
                              found=f"{order!r:.60}")
        return self._like([self.dist[dim] for dim in order], self.partial)

    def with_dim(self, dim: int, cut: Replicate | Shard) -> TensorLayout:
        """Return the layout with one dimension cut otherwise."""
        at = _check_dim(dim, self.rank)
        dist: list[Replicate | Shard] = [Replicate() if isinstance(cut, Shard) and one == cut else one for one in self.dist]
        dist[at] = cut
        return self._like(dist, [one for one in self.partial if not isinstance(cut, Shard) or one.axis != cut.axis])

    # -- values --------------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorLayout) and (self.dist, self.partial, self.mem) == (other.dist, other.partial, other.mem)

    def __hash__(self) -> int:
        return hash((self.dist, self.partial, self.mem))

    def __repr__(self) -> str:
        said = ", ".join(map(repr, self.dist))
        return f"TensorLayout({said}{'; ' * bool(self.partial)}{', '.join(map(repr, self.partial))})"

    def _like(self, dist: Sequence[Replicate | Shard], partial: Sequence[Partial]) -> TensorLayout:
        made = TensorLayout(tuple(dist), self.mem, partial=tuple(partial))
        made.span = self.span
        return made

    def _with(self, cuts: dict[int, Shard]) -> TensorLayout:
        return self._like([cuts.get(dim, one) for dim, one in enumerate(self.dist)], self.partial)

    def _leading(self) -> TensorLayout:
        return self._like(self.dist[:-2], ())

    def _refuse_partial(self, what: object) -> None:
        if self.partial:
            raise LayoutError(f"{what} of a partial tensor", here(), expected="a tensor without partial results", found=repr(self),
                              also=made_at(self, "made here"), help="allreduce first; reduce_scatter leaves each rank a shard of the total")

    def _joined(self, other: TensorLayout) -> TensorLayout:
        """Return the layout with each dimension cut where either is."""
        rank = max(self.rank, other.rank)
        pairs = zip((Replicate(),) * (rank - self.rank) + self.dist, (Replicate(),) * (rank - other.rank) + other.dist, strict=True)
        dist: list[Replicate | Shard] = []
        for dim, (one, two) in enumerate(pairs):
            if isinstance(one, Shard) and isinstance(two, Shard) and one != two:
                raise _mismatch(f"dimension {dim} is cut along two mesh axes", self, other, f"{one!r} on both sides, or one side whole",
                                f"relayout the second operand to {other.with_dim(dim - rank, one)!r}")
            dist.append(two if isinstance(one, Replicate) else one)
        return _made(dist, self.partial, self, other)


def shard_rows(extent: int | Symbolic, n: int) -> int | Symbolic:
    """Return the rows of a full shard of `extent` rows over `n` positions."""
    rows = ceildiv(extent, n)
    return rows if isinstance(rows, Symbolic) else int(rows)


def shard_bounds(extent: int | Symbolic, n: int, at: int | Symbolic) -> tuple[object, object]:
    """Return the half-open range of rows of the shard at position `at`; first and end of an empty shard are equal."""
    rows = shard_rows(extent, n)
    if isinstance(extent, int) and extent % n == 0:
        return at * rows, (at + 1) * rows
    return minimum(at * rows, extent), minimum((at + 1) * rows, extent)


def shard_size(extent: int, n: int, at: int) -> int:
    """Return the number of rows of the shard at position `at`."""
    rows = _ceil(extent, n)
    return max(0, min(rows, extent - at * rows))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _made(dist: Sequence[Replicate | Shard], partial: Sequence[Partial], one: TensorLayout, two: TensorLayout) -> TensorLayout:
    """Return the layout of a result of two tensors.

    Raises: M101 if an axis is used twice.
    """
    axes = [*(each.axis for each in dist if isinstance(each, Shard)), *(each.axis for each in partial)]
    twice = next((axis for k, axis in enumerate(axes) if axis in axes[:k]), None)
    if twice is not None:
        raise _mismatch(f"the result would use mesh axis {twice!r} twice", one, two, "operands that are cut along different axes",
                        f"relayout the second operand to {two.with_axis(twice)!r}")
    return one._like(dist, partial)


def made_at(layout: TensorLayout, said: str) -> tuple[tuple[str, Span], ...]:
    """Return the note of an error about the line that made a layout, with the text `said`; () if the line is unknown."""
    return () if layout.span == UNKNOWN else ((said, layout.span),)


def _mismatch(what: str, one: TensorLayout, two: TensorLayout, expected: str, mend: str) -> LayoutError:
    return LayoutError(what, here(), expected=expected, found=f"{one!r} and {two!r}",
                       also=(*made_at(one, "the first was made here"), *made_at(two, "the second was made here")), help=mend)


def _check_axis(axis: object) -> MeshAxis:
    if isinstance(axis, str) or (isinstance(axis, int) and not isinstance(axis, bool) and axis >= 0):
        return axis
    raise LayoutShapeError("a mesh axis is a name or a number", here(), expected='mesh_axis="x", or mesh_axis=0', found=f"{axis!r:.60}")


def _check_rank(rank: object) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
        raise LayoutShapeError("a layout has a number of dimensions", here(), expected="rank=2 for a matrix", found=f"{rank!r:.60}")
    return rank


def _check_dim(dim: object, rank: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise LayoutShapeError("there is no such dimension", here(), expected=f"a whole number below {rank}", found=f"{dim!r:.60}")
    return dim % rank
