"""Expand collectives to copies and sums, by algorithm: `relayout`, `allreduce`, `allgather`, `reduce_scatter`, `all_to_all`, `broadcast`, `halo`.

Each function writes loops over the ranks of the mesh into the workload, and returns the tensor that it makes, or `out`. The order in which
an element is summed is the algorithm's: `ring`, from the rank behind its owner round to the owner; `tree`, pairs of ranks; `direct`, from
rank 0 upwards. So two runs have the same bits, and every rank the same result.

>>> total = allreduce(Y, "x", algorithm="ring")
>>> program.collectives[0].bytes_sent(0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from pto_wsp.calls import user_call
from pto_wsp.errors import ArgumentKindError, CollectiveError, LayoutError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.mesh import Mesh, MeshInUse
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, maximum, minimum
from pto_wsp.ir.tensor import Tensor, TensorView, live_tensor
from pto_wsp.ir.tensor_layout import Shard, TensorLayout, shard_rows
from pto_wsp.ir.traffic import Collective, Sent
from pto_wsp.source import here
from pto_wsp.trace.workload.loops import P
from pto_wsp.trace.workload.moves import Mover, bound_of
from pto_wsp.trace.workload.trace import current_trace
from pto_wsp.values import dataclass

Algorithm: TypeAlias = Literal["ring", "tree", "direct"]
_ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
Coordinate: TypeAlias = "int | Symbolic"
MeshAxis: TypeAlias = "str | int | None"


# -- what users call ---------------------------------------------------------------------------------------------------
@user_call("relayout")
def relayout(tensor: Tensor, layout: TensorLayout, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
             mesh: Mesh | None = None) -> Tensor:
    """Return the tensor in another layout, by the collective that leads there: one mesh axis after another, in the mesh's order.

    R to S is a copy of each rank's own part; S to R an allgather; S(i) to S(j) an all_to_all; partial to R an allreduce; partial to S a
    reduce_scatter. `out`: the tensor, of that layout, that the result is written to.
    Raises: M101 for a layout that the tensor cannot have; M102 for an axis that the mesh does not have; M104 for a wrong place or `out`.
    """
    group = _begin("relayout", tensor, algorithm, mesh)
    if not isinstance(layout, TensorLayout) or layout.rank != tensor.rank:
        raise LayoutError("relayout takes a layout of the tensor's dimensions", here(), expected=f"a TensorLayout of rank {tensor.rank}",
                          found=f"{layout!r:.80}")
    start, wanted = _layout(tensor, group.mesh), layout.named_on(group.mesh)
    grown = [one for one in wanted.partial if one not in start.partial]
    if grown:
        raise LayoutError("relayout makes no partial results", here(), expected="a sharded or replicated layout", found=repr(layout))
    _check_out("relayout", out, tensor, wanted, group.mesh)
    steps = _steps(start, wanted, group.mesh)
    if not steps:
        return tensor if out is None else group.assign(tensor, out)
    found = tensor
    for number, (axis, change) in enumerate(steps):
        following = out if number == len(steps) - 1 else None
        found = _STEPS[change.kind](_Group(group.mover, group.ranks, axis, algorithm), found, change.dim, following)
    return found


@user_call("allreduce")
def allreduce(tensor: Tensor, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
              mesh: Mesh | None = None) -> Tensor:
    """Return the total of a tensor that is partial along a mesh axis, on every rank; by default the only axis it is partial along.

    Raises: M101 for a tensor that is not partial along the axis; M104 for a collective under conditions that differ by rank.
    """
    group = _begin("allreduce", tensor, algorithm, mesh)
    which = _partial_axis("allreduce", tensor, axis, group.mesh)
    return _allreduce(group.along(which), tensor, None, out)


@user_call("reduce_scatter")
def reduce_scatter(tensor: Tensor, dim: int = 0, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
                   mesh: Mesh | None = None) -> Tensor:
    """Return the total of a tensor that is partial along a mesh axis, cut along it in dimension `dim`.

    Raises: M101 for a tensor that is not partial along the axis, for a dimension that is cut already; M104 as `allreduce`.
    """
    group = _begin("reduce_scatter", tensor, algorithm, mesh)
    which = _partial_axis("reduce_scatter", tensor, axis, group.mesh)
    return _reduce_scatter(group.along(which), tensor, _dim("reduce_scatter", tensor, dim), out)


@user_call("allgather")
def allgather(tensor: Tensor, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
              mesh: Mesh | None = None) -> Tensor:
    """Return a tensor that is cut along a mesh axis whole on every rank; by default the only axis that cuts it.

    Raises: M101 for a tensor that the axis does not cut; M104 as `allreduce`.
    """
    group = _begin("allgather", tensor, algorithm, mesh)
    which = _cut_axis("allgather", tensor, axis, group.mesh)
    return _allgather(group.along(which), tensor, None, out)


@user_call("all_to_all")
def all_to_all(tensor: Tensor, dim: int, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "direct",
               mesh: Mesh | None = None) -> Tensor:
    """Return a tensor that a mesh axis cuts along one dimension cut along dimension `dim` instead.

    `ring` sends every piece to its rank in p - 1 rounds, `direct` all at once; there is no tree.
    Raises: M101 for a tensor that the axis does not cut, for a dimension that is cut already; M104 as `allreduce`.
    """
    group = _begin("all_to_all", tensor, algorithm, mesh)
    which = _cut_axis("all_to_all", tensor, axis, group.mesh)
    return _all_to_all(group.along(which), tensor, _dim("all_to_all", tensor, dim), out)


@user_call("broadcast")
def broadcast(tensor: Tensor, root: int = 0, axis: MeshAxis = None, *, algorithm: Algorithm = "tree", mesh: Mesh | None = None) -> Tensor:
    """Give every rank along a mesh axis the copy of the rank at position `root`, and return the tensor.

    Raises: M101 for a tensor that is not replicated along the axis, and for one with an array; M102 for a position that there is not.
    """
    group = _begin("broadcast", tensor, algorithm, mesh)
    layout = _layout(tensor, group.mesh)
    free = [name for name, _ in group.mesh.axes if name not in layout.axes]
    which = _one_axis("broadcast", axis, group.mesh, free, tensor, "is replicated along")
    if not tensor.intermediate:
        raise LayoutError("broadcast: an array that is replicated is equal on every rank", here(), found=repr(tensor),
                          expected="Tensor.empty(shape, dtype, layout=...), of which each rank has a copy")
    p = group.mesh.shape[which]
    if isinstance(root, bool) or not isinstance(root, int) or not 0 <= root < p:
        raise CollectiveError("broadcast: there is no such position", here(), expected=f"a whole number, 0 .. {p - 1}", found=f"{root!r:.60}")
    along = group.along(which)
    along.broadcast(lambda at: tensor.part(along.mesh, at), root)
    along.record("broadcast", tensor, along.sent_broadcast(along.local_bytes(tensor), root))
    return tensor


@user_call("halo")
def halo(tensor: Tensor, k: int, dim: int = 0, axis: MeshAxis = None, *, mesh: Mesh | None = None) -> Tensor:
    """Return a tensor whose part on each rank is its shard of dimension `dim` between the neighbours' nearest `k` rows.

    A part has ceildiv(n, p) + 2 k rows: k of the rank before, the shard, k of the rank behind. Rows beyond the ends of the tensor are not
    written, and short shards have undefined rows behind those of the neighbour.
    Raises: M101 for a dimension that no mesh axis cuts; M104 for k below 1, or above a shard's rows.
    """
    group = _begin("halo", tensor, "direct", mesh)
    at = _dim("halo", tensor, dim)
    layout = _layout(tensor, group.mesh)
    cut = layout.dist[at]
    if not isinstance(cut, Shard):
        raise LayoutError(f"halo: dimension {at} is not cut, so there are no neighbours", here(), found=repr(layout),
                          expected="a dimension that a mesh axis cuts")
    along = group.along(_cut_axis("halo", tensor, cut.axis if axis is None else axis, group.mesh))
    return _halo(along, tensor, at, k)


# -- where a collective stands -----------------------------------------------------------------------------------------
def _begin(what: str, tensor: object, algorithm: object, mesh: object) -> _Group:
    """Return the ranks of a collective.

    Raises: T205 for what is no Tensor; M101 for one without a layout; M102 without a mesh; M104 in a loop over ranks, under a condition that
    reads what differs by rank, or for an unknown algorithm.
    """
    trace = current_trace(f"{what}(...)")
    if not isinstance(tensor, Tensor):
        raise ArgumentKindError(f"{what} takes a whole tensor", here(), expected="a Tensor with a layout",
                                found=f"{type(tensor).__name__}: {tensor!r:.60}")
    if tensor.layout is None:
        raise LayoutError(f"{what}: `{tensor.ref.shown}` says nothing of ranks", here(), found=repr(tensor), expected="a tensor with a layout")
    if algorithm not in _ALGORITHMS:
        raise CollectiveError(f"{what}: there is no such algorithm", here(), expected=" or ".join(_ALGORITHMS), found=f"{algorithm!r:.60}")
    if mesh is not None:
        if not isinstance(mesh, Mesh):
            raise ArgumentKindError(f"{what} takes a mesh", here(), expected="mesh=Mesh(x=2)", found=f"{mesh!r:.60}")
        trace.ranks.use(mesh)
    if trace.ranks.mesh is None:
        raise CollectiveError(f"{what}: no mesh is known here", here(), help="say mesh=mesh, or loop `for r in P(mesh)` before")
    if trace.ranks.loops:
        raise CollectiveError(f"{what} in a loop over the ranks", here(), help="write it outside of the loop: all ranks take part at once")
    _refuse_conditions(what, trace.ranks)
    if any(not isinstance(extent, int) for extent in tensor.shape):
        raise CollectiveError(f"{what} of a tensor whose shape only a run knows", here(), expected="a shape of numbers", found=repr(tensor))
    if tensor.rank == 0 or 0 in tensor.ref.shape:
        raise CollectiveError(f"{what} of a tensor without elements or dimensions", here(), found=repr(tensor))
    return _Group(Mover(trace, trace.ranks.mesh), trace.ranks, 0, str(algorithm))


def _refuse_conditions(what: str, ranks: MeshInUse) -> None:
    """Refuse a collective under a condition, or in a loop, that reads a part: ranks would disagree about it.

    Raises: M104.
    """
    for scalars, span in ranks.read:
        for node in scalars:
            for leaf in s.leaves(node):
                if not isinstance(leaf, s.Element):
                    continue
                tensor = live_tensor(leaf.tensor.id)
                layout = None if tensor is None else tensor.layout
                if leaf.tensor.id in ranks.of_ranks or (layout is not None and not layout.is_replicated):
                    raise CollectiveError(f"{what} depends on what differs by rank", here(), found=print_scalar(node),
                                          expected="conditions and bounds of symbols and replicated tensors", also=(("read here", span),),
                                          help="make the number equal on all ranks first: an allreduce, or an allgather")


def _layout(tensor: Tensor, mesh: Mesh) -> TensorLayout:
    assert tensor.layout is not None
    return tensor.layout.named_on(mesh)


def _dim(what: str, tensor: Tensor, dim: object) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int) or not -tensor.rank <= dim < tensor.rank:
        raise CollectiveError(f"{what}: there is no such dimension", here(), expected=f"a whole number below {tensor.rank}", found=f"{dim!r:.60}")
    return dim % tensor.rank


def _one_axis(what: str, axis: object, mesh: Mesh, fitting: Sequence[str], tensor: Tensor, fits: str) -> int:
    """Return the number of the axis of a collective.

    Raises: M101 where the tensor's layout does not fit; M102 for an axis that there is not.
    """
    if axis is None and len(fitting) == 1:
        return mesh.axis(fitting[0])
    if axis is not None and mesh.axes[mesh.axis(axis)][0] in fitting:
        return mesh.axis(axis)
    said = ", ".join(map(repr, fitting)) or "none"
    raise LayoutError(f"{what}: `{tensor.ref.shown}` does not fit" if axis is not None else f"{what}: which mesh axis?", here(),
                      expected=f"an axis that the tensor {fits}: {said}", found=f"{axis!r}, of layout {tensor.layout!r}",
                      also=tensor.layout._line("the layout was made here") if tensor.layout is not None else ())


def _partial_axis(what: str, tensor: Tensor, axis: MeshAxis, mesh: Mesh) -> int:
    return _one_axis(what, axis, mesh, [str(one.axis) for one in _layout(tensor, mesh).partial], tensor, "is partial along")


def _cut_axis(what: str, tensor: Tensor, axis: MeshAxis, mesh: Mesh) -> int:
    cut = [str(one.axis) for one in _layout(tensor, mesh).dist if isinstance(one, Shard)]
    return _one_axis(what, axis, mesh, cut, tensor, "is cut along")


def _check_out(what: str, out: object, like: Tensor, layout: TensorLayout, mesh: Mesh) -> None:
    """Check the tensor that a result is written to.

    Raises: T205, M104.
    """
    if out is None:
        return
    if not isinstance(out, Tensor):
        raise ArgumentKindError(f"{what}: out is no Tensor", here(), expected="a Tensor with the result's layout", found=f"{out!r:.60}")
    found = None if out.layout is None else out.layout.named_on(mesh)
    if found is None or (found.dist, found.partial) != (layout.dist, layout.partial) or out.ref.shape != like.ref.shape \
            or out.dtype != like.dtype:
        raise CollectiveError(f"{what}: out does not fit the result", here(), expected=f"{list(like.ref.shape)} {like.dtype}, {layout!r}",
                              found=f"{list(out.ref.shape)} {out.dtype}, {found!r}")
    if out is like:
        raise CollectiveError(f"{what}: out is the tensor itself", here(), expected="another tensor")


# -- the ranks along one axis ------------------------------------------------------------------------------------------
Part: TypeAlias = Callable[[Sequence[Coordinate]], TensorView]


@dataclass(slots=True)
class _Group:
    """The ranks of a mesh in groups along one of its axes, and what writes their copies."""

    mover: Mover
    ranks: MeshInUse
    axis: int
    algorithm: str

    @property
    def mesh(self) -> Mesh:
        """The mesh."""
        return self.mover.mesh

    @property
    def p(self) -> int:
        """The number of ranks of a group."""
        return self.mesh.shape[self.axis]

    @property
    def name(self) -> str:
        """The name of the axis."""
        return self.mesh.axes[self.axis][0]

    def along(self, axis: int) -> _Group:
        """Return the groups along another axis."""
        return _Group(self.mover, self.ranks, axis, self.algorithm)

    def all(self, *, n: int | None = None) -> Iterator[tuple[Coordinate, ...]]:
        """Loop over all ranks, given by their positions. `n`: of as many positions along the axis, from 0."""
        sizes = [n if n is not None and number == self.axis else size for number, size in enumerate(self.mesh.shape)]
        names = [name for name, _ in self.mesh.axes]
        for at in P(*sizes, names=names):
            yield at if isinstance(at, tuple) else (at,)

    def moved(self, at: Sequence[Coordinate], to: Coordinate) -> tuple[Coordinate, ...]:
        """Return a rank's position with another one along the axis."""
        return tuple(to if number == self.axis else one for number, one in enumerate(at))

    def rank(self, at: Sequence[Coordinate]) -> Symbolic:
        """Return the number of the rank at a position."""
        return Symbolic(self.mesh.rank(at))

    def next(self, at: Sequence[Coordinate], by: int | Symbolic) -> Coordinate:
        """Return the position along the axis `by` ranks on, round the end."""
        return _mod(at[self.axis] + by, self.p)

    def send(self, target: Part, source: Part, to: Sequence[Coordinate], of: Sequence[Coordinate]) -> None:
        """Copy the part of one rank to the part of another one."""
        self.mover.copy(target(to), source(of), self.rank(to), self.rank(of))

    def local(self, target: Part, source: Part, at: Sequence[Coordinate]) -> None:
        """Copy a part of a rank to another one of its parts."""
        self.send(target, source, at, at)

    def add(self, target: Part, source: Part, at: Sequence[Coordinate], op: str) -> None:
        """Combine a part of a rank with a total of it."""
        self.mover.combine(target(at), source(at), self.rank(at), op)

    def scratch(self, like: Tensor, layout: TensorLayout, shape: Sequence[int] | None = None) -> Tensor:
        """Return memory of the program for parts like those of a tensor."""
        made = Tensor(None, tuple(like.ref.shape) if shape is None else tuple(shape), like.dtype, None, layout)
        made.intermediate = True
        made.data = np.empty(made.ref.shape, made.dtype.np)
        return made

    def result(self, what: str, tensor: Tensor, layout: TensorLayout, out: Tensor | None) -> tuple[Tensor, Part, Callable[[], None]]:
        """Return the tensor of a result, the part of each rank, and what ends the collective: an array takes rank 0's copy."""
        _check_out(what, out, tensor, layout, self.mesh)
        if out is None:
            made = self.scratch(tensor, layout)
            return made, lambda at: made.part(self.mesh, at), _nothing
        free = self._free(layout)
        if out.intermediate or not free:
            return out, lambda at: out.part(self.mesh, at), _nothing
        n = 1
        for number in free:
            n *= self.mesh.shape[number]
        kept = self.ranks.copies.get(out.ref.id)
        if not isinstance(kept, Tensor):
            kept = self.ranks.copies[out.ref.id] = out.copies_for(n)
        whole = Tensor.part

        def finish() -> None:
            sizes = [1 if number in free else size for number, size in enumerate(self.mesh.shape)]
            for at in _positions(sizes, self.mesh):
                copies = self.ranks.copies.pop(out.ref.id)
                target = whole(out, self.mesh, at)
                self.ranks.copies[out.ref.id] = copies
                self.mover.copy(target, whole(out, self.mesh, at), self.rank(at), self.rank(at))

        return out, lambda at: whole(out, self.mesh, at), finish

    def assign(self, tensor: Tensor, out: Tensor) -> Tensor:
        """Copy every rank's part to the same part of another tensor."""
        assert tensor.layout is not None
        _, part, finish = self.result("relayout", tensor, _layout(tensor, self.mesh), out)
        for at in self.all():
            self.local(part, lambda at: tensor.part(self.mesh, at), at)
        finish()
        self.record("relayout", tensor, lambda at: 0)
        return out

    def _free(self, layout: TensorLayout) -> list[int]:
        cut = {layout.named_on(self.mesh).dist[dim] for dim in range(layout.rank)}
        return [number for number, (name, size) in enumerate(self.mesh.axes) if size > 1 and Shard(name) not in cut]

    # -- steps of algorithms -------------------------------------------------------------------------------------------

    def chunk(self, part: Part, dim: int, most: int, q: Callable[[Sequence[Coordinate]], Coordinate]) -> Part:
        """Return chunk q of a part: of its `most` rows or fewer in `dim`, p chunks of ceildiv(most, p)."""
        rows = -(-most // self.p)

        def cut(at: Sequence[Coordinate]) -> TensorView:
            whole, number = part(at), q(at)
            extent = whole.shape[dim]
            if isinstance(extent, int) and extent == self.p * rows:
                return whole[(slice(None),) * dim + (slice(number * rows, (number + 1) * rows),)]
            start, stop = minimum(number * rows, extent), minimum((number + 1) * rows, extent)
            view: TensorView = whole[(slice(None),) * dim + (slice(start, stop),)]
            return view.clip(*(rows if number == dim else None for number in range(view.rank)))

        return cut

    def broadcast(self, part: Part, root: int) -> None:
        """Copy the parts at position `root` to the other positions."""
        p = self.p
        if self.algorithm == "direct":
            for at in self.all(n=p - 1):
                to = self.moved(at, _mod(at[self.axis] + 1 + root, p))
                self.send(part, part, to, self.moved(at, root))
        elif self.algorithm == "ring":
            for step in P.seq(p - 1, names="step"):
                for at in self.all(n=1):
                    self.send(part, part, self.moved(at, _mod(step + 1 + root, p)), self.moved(at, _mod(step + root, p)))
        else:
            for first, apart, n in reversed(_levels(p)):
                for at in self.all(n=n):
                    of = at[self.axis] * first + root
                    self.send(part, part, self.moved(at, _mod(of + apart, p)), self.moved(at, _mod(of, p)))

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def local_bytes(self, tensor: Tensor, dim: int | None = None) -> Sent:
        """Return the bytes of a rank's part of a tensor, by position; without dimension `dim`, which counts its rows apart."""
        layout, shape = _layout(tensor, self.mesh), tensor.ref.shape

        def of(at: Sequence[Coordinate]) -> object:
            total: object = tensor.dtype.nbytes
            for number, (extent, cut) in enumerate(zip(shape, layout.dist, strict=True)):
                if number == dim:
                    continue
                total = total * _rows(extent, self.mesh, cut, at)   # type: ignore[operator]
            return total

        return of

    def chunk_rows(self, tensor: Tensor, dim: int, q: Coordinate, at: Sequence[Coordinate]) -> object:
        """Return the rows of chunk q of a rank's part."""
        layout = _layout(tensor, self.mesh)
        whole = tensor.ref.shape[dim]
        cut = layout.dist[dim]
        most = whole if not isinstance(cut, Shard) else -(-whole // self.mesh.shape[self.mesh.axis(cut.axis)])
        rows = -(-most // self.p)
        return maximum(0, minimum(rows, _rows(whole, self.mesh, cut, at) - q * rows))   # type: ignore[operator]

    def sent_broadcast(self, whole: Sent, root: int) -> Sent:
        """Return the bytes that a rank sends in a broadcast of its part."""
        p = self.p

        def of(at: Sequence[Coordinate]) -> object:
            v = _mod(at[self.axis] + (p - root), p)
            if self.algorithm == "direct":
                count: object = (p - 1) * _is(v, 0)
            elif self.algorithm == "ring":
                count = 1 - _is(v, p - 1) if p > 1 else 0
            else:
                count = 0
                for first, apart, _ in _levels(p):
                    count = count + _is(_mod(v, first), 0) * _below(v + apart, p)
            return whole(at) * count   # type: ignore[operator]

        return of

    def record(self, what: str, tensor: Tensor, sent: Sent) -> None:
        """Keep what a collective sends."""
        self.ranks.moves.append(Collective(what, self.algorithm, self.mesh, self.name, tensor.ref.shown, sent, here()))


def _nothing() -> None:
    return None


def _positions(sizes: Sequence[int], mesh: Mesh) -> Iterator[tuple[Coordinate, ...]]:
    for at in P(*sizes, names=[name for name, _ in mesh.axes]):
        yield at if isinstance(at, tuple) else (at,)


def _mod(value: object, n: int) -> Coordinate:
    return value % n   # type: ignore[operator, no-any-return]


def _is(value: Coordinate, number: int) -> object:
    """Return 1 where a position, from 0 on, is a number, else 0."""
    if isinstance(value, int):
        return int(value == number)
    return 1 - minimum(1, maximum(value - number, number - value))   # type: ignore[operator]


def _below(value: object, n: int) -> object:
    """Return 1 where a whole number is below n, else 0."""
    if isinstance(value, int):
        return int(value < n)
    return maximum(0, minimum(1, n - value))   # type: ignore[operator]


def _rows(extent: int, mesh: Mesh, cut: object, at: Sequence[Coordinate]) -> object:
    """Return the rows of a dimension that a rank holds."""
    if not isinstance(cut, Shard):
        return extent
    number = mesh.axis(cut.axis)
    n = mesh.shape[number]
    rows = shard_rows(extent, n)
    if extent % n == 0:
        return rows
    return maximum(0, minimum(rows, extent - at[number] * rows))   # type: ignore[operator]


def _levels(p: int) -> list[tuple[int, int, int]]:
    """Return the levels of a tree over p positions, from the leaves up: 2^(l+1), 2^l, and how many pairs there are.

    On a level, position i * 2^(l+1) takes from the position 2^l on.
    """
    levels, apart = [], 1
    while apart < p:
        levels.append((2 * apart, apart, -(-(p - apart) // (2 * apart))))
        apart *= 2
    return levels


# -- expansions --------------------------------------------------------------------------------------------------------
def _chunk_dim(tensor: Tensor, group: _Group) -> tuple[int, int]:
    """Return the dimension that is cut into chunks, the longest of a rank's part, and its most rows."""
    layout = _layout(tensor, group.mesh)
    most = [extent if not isinstance(cut, Shard) else -(-extent // group.mesh.shape[group.mesh.axis(cut.axis)])
            for extent, cut in zip(tensor.ref.shape, layout.dist, strict=True)]
    dim = max(range(len(most)), key=lambda number: (most[number], -number))
    return dim, most[dim]


def _reduce(group: _Group, tensor: Tensor, dim: int, most: int, op: str, owner: Part) -> None:
    """Write, to the part `owner` of each rank, the total of its chunk: by a ring, or directly."""
    p, mesh, layout = group.p, group.mesh, _layout(tensor, group.mesh)

    def terms(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(mesh, at)

    def own(at: Sequence[Coordinate]) -> Coordinate:
        return at[group.axis]

    if p == 1:
        for at in group.all():
            group.local(owner, group.chunk(terms, dim, most, own), at)
        return
    if group.algorithm == "direct":
        rows = -(-most // p)
        shape = list(tensor.ref.shape)
        shape[dim] = p * rows
        inbox = group.scratch(tensor, layout.with_dim(dim, TensorLayout.replicated(1).dist[0]), shape)

        def slot(of: Coordinate) -> Part:
            def view(at: Sequence[Coordinate]) -> TensorView:
                start = of * rows
                box: TensorView = inbox.part(mesh, at)[(slice(None),) * dim + (slice(start, start + rows),)]
                like = owner(at)
                if all(isinstance(n, int) for n in like.shape) and like.shape[dim] == rows:
                    return box
                cut: TensorView = box[tuple(slice(0, extent) for extent in like.shape)]
                return cut.clip(*(bound_of(extent) for extent in like.shape))
            return view

        for at in group.all():
            for of in P(p, names="source"):
                group.send(slot(of), group.chunk(terms, dim, most, _always(at[group.axis])), at, group.moved(at, of))
        for at in group.all():
            group.local(owner, slot(0), at)
            for of in P.seq(range(1, p), names="source"):
                group.add(owner, slot(of), at, op)
        return
    total = group.scratch(tensor, layout)

    def sums(at: Sequence[Coordinate]) -> TensorView:
        return total.part(mesh, at)

    def ring(step: int | Symbolic, source: Part, target: Callable[[Callable[[Sequence[Coordinate]], Coordinate]], Part]) -> None:
        """Receive a chunk's sum so far from the rank before, and add the own term."""
        for at in group.all():
            q = _mod(at[group.axis] + (2 * p - 2) - step, p)
            fixed = _always(q)
            group.send(target(fixed), group.chunk(source, dim, most, fixed), at, group.moved(at, group.next(at, p - 1)))
            group.add(target(fixed), group.chunk(terms, dim, most, fixed), at, op)

    def into(q: Callable[[Sequence[Coordinate]], Coordinate]) -> Part:
        return group.chunk(sums, dim, most, q)

    ring(0, terms, into if p > 2 else lambda q: owner)
    if p > 2:
        if p > 3:
            for step in P.seq(range(1, p - 2), names="step"):
                ring(step, sums, into)
        for at in group.all():    # the last step ends on the owner
            q = at[group.axis]
            group.send(owner, group.chunk(sums, dim, most, _always(q)), at, group.moved(at, group.next(at, p - 1)))
            group.add(owner, group.chunk(terms, dim, most, _always(q)), at, op)


def _always(q: Coordinate) -> Callable[[Sequence[Coordinate]], Coordinate]:
    return lambda _: q


def _reduce_to_first(group: _Group, tensor: Tensor, op: str) -> Part:
    """Add pairs of ranks, and pairs of pairs; return the parts whose position 0 has the total."""
    mesh, layout = group.mesh, _layout(tensor, group.mesh)
    total, inbox = group.scratch(tensor, layout), group.scratch(tensor, layout)

    def sums(at: Sequence[Coordinate]) -> TensorView:
        return total.part(mesh, at)

    def box(at: Sequence[Coordinate]) -> TensorView:
        return inbox.part(mesh, at)

    for at in group.all():
        group.local(sums, lambda at: tensor.part(mesh, at), at)
    for first, apart, n in _levels(group.p):
        for at in group.all(n=n):
            to = group.moved(at, at[group.axis] * first)
            group.send(box, sums, to, group.moved(at, at[group.axis] * first + apart))
            group.add(sums, box, to, op)
    return sums


def _sent_to_first(group: _Group, whole: Sent) -> Sent:
    """Return what a rank sends up a tree: its part, unless it is the first one."""
    return lambda at: whole(at) * (1 - _is(at[group.axis], 0) if group.p > 1 else 0)   # type: ignore[operator]


def _sent_chunks(group: _Group, tensor: Tensor, dim: int, left_out: int) -> Sent:
    """Return the bytes of a rank's part without the chunk `left_out` ranks on: what it sends in one round of a ring."""
    whole, row = group.local_bytes(tensor), group.local_bytes(tensor, dim)
    return lambda at: whole(at) - row(at) * group.chunk_rows(tensor, dim, group.next(at, left_out), at)   # type: ignore[operator]


def _plus(*sent: Sent) -> Sent:
    def of(at: Sequence[Coordinate]) -> object:
        total: object = 0
        for one in sent:
            total = total + one(at)   # type: ignore[operator]
        return total
    return of


def _allreduce(group: _Group, tensor: Tensor, _: int | None, out: Tensor | None) -> Tensor:
    layout = _layout(tensor, group.mesh)
    op = layout.reduction_of(group.name)
    assert op is not None
    made, part, finish = group.result("allreduce", tensor, layout.with_axis(group.name), out)
    whole = group.local_bytes(tensor)
    if group.algorithm == "tree":
        sums = _reduce_to_first(group, tensor, op)
        for at in group.all(n=1):
            group.local(part, sums, at)
        group.broadcast(part, 0)
        sent = _plus(_sent_to_first(group, whole), group.sent_broadcast(whole, 0))
    else:
        dim, most = _chunk_dim(tensor, group)
        _reduce(group, tensor, dim, most, op, group.chunk(part, dim, most, lambda at: at[group.axis]))
        _gather(group, part, dim, most)
        row = group.local_bytes(tensor, dim)
        sent = _plus(_sent_chunks(group, tensor, dim, 0),
                     _sent_chunks(group, tensor, dim, 1) if group.algorithm == "ring" else
                     lambda at: row(at) * group.chunk_rows(tensor, dim, at[group.axis], at) * (group.p - 1))   # type: ignore[operator]
    finish()
    group.record("allreduce", tensor, sent)
    return made


def _gather(group: _Group, part: Part, dim: int, most: int) -> None:
    """Bring every chunk of the parts, which its own rank has, to all ranks."""
    p = group.p
    if p == 1:
        return
    if group.algorithm == "direct":
        for at in group.all():
            for away in P(p - 1, names="source"):
                q = _mod(at[group.axis] + 1 + away, p)
                chunk = group.chunk(part, dim, most, _always(q))
                group.send(chunk, chunk, at, group.moved(at, q))
        return
    for step in P.seq(p - 1, names="step"):
        for at in group.all():
            chunk = group.chunk(part, dim, most, _always(_mod(at[group.axis] + (2 * p - 1) - step, p)))
            group.send(chunk, chunk, at, group.moved(at, group.next(at, p - 1)))


def _reduce_scatter(group: _Group, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    layout = _layout(tensor, group.mesh)
    op = layout.reduction_of(group.name)
    assert op is not None and dim is not None
    wanted = layout.with_axis(group.name, dim=dim)
    made, part, finish = group.result("reduce_scatter", tensor, wanted, out)
    most = tensor.ref.shape[dim]
    if group.algorithm == "tree":
        sums = _reduce_to_first(group, tensor, op)
        for at in group.all():
            group.send(part, group.chunk(sums, dim, most, _always(at[group.axis])), at, group.moved(at, 0))
        whole, row = group.local_bytes(tensor), group.local_bytes(tensor, dim)
        sent = _plus(_sent_to_first(group, whole), lambda at: _is(at[group.axis], 0) * (   # type: ignore[operator]
            whole(at) - row(at) * group.chunk_rows(tensor, dim, 0, at)))   # type: ignore[operator]
    else:
        _reduce(group, tensor, dim, most, op, part)
        sent = _sent_chunks(group, tensor, dim, 0)
    finish()
    group.record("reduce_scatter", tensor, sent)
    return made


def _allgather(group: _Group, tensor: Tensor, _: int | None, out: Tensor | None) -> Tensor:
    layout = _layout(tensor, group.mesh)
    dim = layout.dim_of(group.name)
    assert dim is not None
    made, part, finish = group.result("allgather", tensor, layout.with_axis(group.name), out)
    most = tensor.ref.shape[dim]

    def shard(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(group.mesh, at)

    own = group.local_bytes(tensor)
    if group.algorithm == "tree":
        for at in group.all():
            group.send(group.chunk(part, dim, most, _always(at[group.axis])), shard, group.moved(at, 0), at)
        group.broadcast(part, 0)
        sent = _plus(_sent_to_first(group, own), group.sent_broadcast(group.local_bytes(made), 0))
    else:
        for at in group.all():
            group.local(group.chunk(part, dim, most, lambda at: at[group.axis]), shard, at)
        _gather(group, part, dim, most)
        sent = _sent_chunks(group, made, dim, 1) if group.algorithm == "ring" else lambda at: own(at) * (group.p - 1)   # type: ignore[operator]
    finish()
    group.record("allgather", tensor, sent)
    return made


def _all_to_all(group: _Group, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    layout = _layout(tensor, group.mesh)
    before = layout.dim_of(group.name)
    assert before is not None and dim is not None
    if group.algorithm == "tree":
        raise CollectiveError("all_to_all has no tree", here(), expected="ring or direct", found="tree")
    if dim == before:
        raise CollectiveError("all_to_all: the dimension is cut along this axis already", here(), expected="another dimension", found=f"{dim}")
    made, part, finish = group.result("all_to_all", tensor, layout.with_axis(group.name, dim=dim), out)
    p, shape = group.p, tensor.ref.shape

    def exchange(at: Sequence[Coordinate], of: Coordinate) -> None:
        there = group.moved(at, of)
        target = group.chunk(part, before, shape[before], _always(of))
        source = group.chunk(lambda there: tensor.part(group.mesh, there), dim, shape[dim], _always(at[group.axis]))
        group.send(target, source, at, there)

    if group.algorithm == "direct":
        for at in group.all():
            for of in P(p, names="source"):
                exchange(at, of)
    else:
        for step in P.seq(p, names="step"):
            for at in group.all():
                exchange(at, _mod(at[group.axis] + step, p))
    finish()
    row = group.local_bytes(tensor, dim)
    group.record("all_to_all", tensor, lambda at: row(at) * (   # type: ignore[operator]
        shape[dim] - group.chunk_rows(tensor, dim, at[group.axis], at)))   # type: ignore[operator]
    return made


def _own_part(group: _Group, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    """Cut a replicated tensor: every rank copies its own part, and nothing is sent."""
    layout = _layout(tensor, group.mesh)
    assert dim is not None
    made, part, finish = group.result("relayout", tensor, layout.with_axis(group.name, dim=dim), out)
    most = tensor.ref.shape[dim]
    for at in group.all():
        group.local(part, group.chunk(lambda at: tensor.part(group.mesh, at), dim, most, lambda at: at[group.axis]), at)
    finish()
    group.record("relayout", tensor, lambda at: 0)
    return made


def _halo(group: _Group, tensor: Tensor, dim: int, k: object) -> Tensor:
    p, n = group.p, tensor.ref.shape[dim]
    rows = -(-n // p)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= rows:
        raise CollectiveError("halo: a neighbour does not have so many rows", here(), expected=f"a whole number, 1 .. {rows}", found=f"{k!r:.60}")
    high = rows + 2 * k
    shape = list(tensor.ref.shape)
    shape[dim] = p * high
    made = group.scratch(tensor, _layout(tensor, group.mesh), shape)

    def rows_of(part: TensorView, start: object, count: object, most: int) -> TensorView:
        view: TensorView = part[(slice(None),) * dim + (slice(start, start + count),)]   # type: ignore[operator]
        return view if isinstance(count, int) and isinstance(view.shape[dim], int) else view.clip(
            *(most if number == dim else None for number in range(view.rank)))

    def size(at: Coordinate) -> object:
        return rows if n % p == 0 else maximum(0, minimum(rows, n - at * rows))   # type: ignore[operator]

    def target(at: Sequence[Coordinate]) -> TensorView:
        return made.part(group.mesh, at)

    def source(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(group.mesh, at)

    def pair(at: Sequence[Coordinate], of: Sequence[Coordinate], start: object, first: object, count: object, most: int) -> None:
        group.send(lambda there: rows_of(target(there), start, count, most), lambda there: rows_of(source(there), first, count, most), at, of)

    for at in group.all():
        pair(at, at, k, 0, size(at[group.axis]), rows)
    if p > 1:
        for at in group.all(n=p - 1):          # from the rank before, which is full unless this one is empty
            c = at[group.axis]
            own, before = size(c + 1), size(c)
            count = k if n % p == 0 else minimum(k, before) * minimum(1, own)   # type: ignore[operator]
            pair(group.moved(at, c + 1), at, k - count, before - count, count, k)   # type: ignore[operator]
        for at in group.all(n=p - 1):          # from the rank behind
            c = at[group.axis]
            count = k if n % p == 0 else minimum(k, size(c + 1))   # type: ignore[operator]
            pair(at, group.moved(at, c + 1), k + size(c), 0, count, k)   # type: ignore[operator]
    row = group.local_bytes(tensor, dim)

    def sent(at: Sequence[Coordinate]) -> object:
        c = at[group.axis]
        behind = minimum(k, size(c)) * minimum(1, size(c + 1)) * _below(c + 1, p)   # type: ignore[operator]
        return row(at) * (behind + minimum(k, size(c)) * (1 - _is(c, 0)))   # type: ignore[operator]

    group.record("halo", tensor, sent)
    return made


# -- relayout ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Change:
    """What happens along one mesh axis. `kind`: a key of `_STEPS`; `dim`: the dimension that is cut then."""

    kind: str
    dim: int | None = None


_STEPS: dict[str, Callable[[_Group, Tensor, int | None, Tensor | None], Tensor]] = {
    "allreduce": _allreduce, "reduce_scatter": _reduce_scatter, "allgather": _allgather, "all_to_all": _all_to_all, "cut": _own_part}


def _steps(start: TensorLayout, wanted: TensorLayout, mesh: Mesh) -> list[tuple[int, _Change]]:
    """Return what leads from one layout to another one: an axis and its change, in an order in which no dimension is cut twice."""
    steps: list[tuple[int, _Change]] = []
    now = start
    left = [number for number in range(len(mesh.axes))]
    while left:
        for number in left:
            change, then = _change(now, wanted, mesh.axes[number][0])
            if then is not None:
                break
        else:      # two axes change places: the first one is gathered, then cut anew
            number = left[0]
            change, then = _Change("allgather"), now.with_axis(mesh.axes[number][0])
            left.append(number)
        left.remove(number)
        if change is not None and then is not None:
            steps.append((number, change))
            now = then
    return steps


def _change(now: TensorLayout, wanted: TensorLayout, axis: str) -> tuple[_Change | None, TensorLayout | None]:
    """Return the change along one axis and the layout behind it; no layout while another axis cuts the dimension."""
    dim, target = now.dim_of(axis), wanted.dim_of(axis)
    is_partial = now.reduction_of(axis) is not None
    if dim == target and is_partial == (wanted.reduction_of(axis) is not None):
        return None, now
    if target is None:
        return _Change("allreduce" if is_partial else "allgather"), now.with_axis(axis)
    cut = now.dist[target]
    if isinstance(cut, Shard) and cut.axis != axis:
        return None, None
    kind = "reduce_scatter" if is_partial else "cut" if dim is None else "all_to_all"
    return _Change(kind, target), now.with_axis(axis, dim=target)
