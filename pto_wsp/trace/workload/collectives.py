"""Expand collectives to copies and sums, by algorithm.

Each function writes loops over the ranks of the mesh into the workload, and returns the tensor that it makes, or `out`. The order in which
an element is summed is the algorithm's: `ring`, from the rank behind its owner round to the owner; `tree`, pairs of ranks; `direct`, from
rank 0 upwards. So two runs have the same bits, and every rank the same result.

>>> total = allreduce(Y, "x", algorithm="ring")
>>> program.collectives[0].bytes_sent(0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

from pto_wsp.calls import user_call
from pto_wsp.errors import CollectiveError, LayoutError, LayoutShapeError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.mesh import Mesh, MeshInUse
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, maximum, minimum
from pto_wsp.ir.tensor import Tensor, TensorView, live_tensor
from pto_wsp.ir.tensor_layout import Replicate, Shard, TensorLayout, made_at
from pto_wsp.ir.traffic import Sent
from pto_wsp.source import here, user_frame
from pto_wsp.trace.tensor.collectives import also_in_functions
from pto_wsp.trace.workload.loops import P
from pto_wsp.trace.workload.moves import Mover, bound_of
from pto_wsp.trace.workload.rank_groups import (
    Coordinate,
    Count,
    Part,
    RankGroup,
    check_out,
    is_at,
    is_below,
    layout_on,
    modulo,
    tree_levels,
)
from pto_wsp.trace.workload.trace import current_trace
from pto_wsp.values import dataclass

Algorithm: TypeAlias = Literal["ring", "tree", "direct"]
_ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
MeshAxis: TypeAlias = "str | int | None"
_ROWS_OF_A_CHUNK = 8     # of the first dimension, for which another one is not looked at


# -- what users call ---------------------------------------------------------------------------------------------------
@user_call("relayout")
@also_in_functions
def relayout(tensor: Tensor, layout: TensorLayout, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
             mesh: Mesh | None = None) -> Tensor:
    """Return the tensor in another layout, by the collective that leads there: one mesh axis after another, in the mesh's order.

    R to S is a copy of each rank's own part; S to R an allgather; S(i) to S(j) an all_to_all; partial to R an allreduce; partial to S a
    reduce_scatter. `out`: the tensor, of that layout, that the result is written to.
    Raises: M101 for a layout that the tensor cannot have; M102 for an axis that the mesh does not have; M104 for a wrong place or `out`.
    """
    group = _begin("relayout", tensor, algorithm, mesh)
    if not isinstance(layout, TensorLayout) or layout.rank != tensor.rank:
        raise LayoutShapeError("relayout takes a layout of the tensor's dimensions", here(),
                               expected=f"a TensorLayout of rank {tensor.rank}",
                          found=f"{layout!r:.80}")
    start, wanted = layout_on(tensor, group.mesh), layout.named_on(group.mesh)
    grown = [one for one in wanted.partial if one not in start.partial]
    if grown:
        raise LayoutError("relayout makes no partial results", here(), expected="a sharded or replicated layout", found=repr(layout))
    check_out("relayout", out, tensor, wanted, group.mesh)
    steps = _steps(start, wanted, group.mesh)
    if not steps:
        return tensor if out is None else group.assign(tensor, out)
    found = tensor
    for number, (axis, change) in enumerate(steps):
        following = out if number == len(steps) - 1 else None
        found = _STEPS[change.kind](RankGroup(group.mover, group.ranks, axis, algorithm), found, change.dim, following)
    return found


@user_call("allreduce")
@also_in_functions
def allreduce(tensor: Tensor, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
              mesh: Mesh | None = None) -> Tensor:
    """Return the total of a tensor that is partial along a mesh axis, on every rank; by default the only axis it is partial along.

    Raises: M101 for a tensor that is not partial along the axis; M104 for a collective under conditions that differ by rank.
    """
    group = _begin("allreduce", tensor, algorithm, mesh)
    which = _partial_axis("allreduce", tensor, axis, group.mesh)
    return _allreduce(group.along(which), tensor, None, out)


@user_call("reduce_scatter")
@also_in_functions
def reduce_scatter(tensor: Tensor, dim: int = 0, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
                   mesh: Mesh | None = None) -> Tensor:
    """Return the total of a tensor that is partial along a mesh axis, cut along it in dimension `dim`.

    Raises: M101 for a tensor that is not partial along the axis, for a dimension that is cut already; M104 as `allreduce`.
    """
    group = _begin("reduce_scatter", tensor, algorithm, mesh)
    which = _partial_axis("reduce_scatter", tensor, axis, group.mesh)
    return _reduce_scatter(group.along(which), tensor, _dim("reduce_scatter", tensor, dim), out)


@user_call("allgather")
@also_in_functions
def allgather(tensor: Tensor, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
              mesh: Mesh | None = None) -> Tensor:
    """Return a tensor that is cut along a mesh axis whole on every rank; by default the only axis that cuts it.

    Raises: M101 for a tensor that the axis does not cut; M104 as `allreduce`.
    """
    group = _begin("allgather", tensor, algorithm, mesh)
    which = _cut_axis("allgather", tensor, axis, group.mesh)
    return _allgather(group.along(which), tensor, None, out)


@user_call("all_to_all")
@also_in_functions
def all_to_all(tensor: Tensor, dim: int | Tensor, axis: MeshAxis = None, *, capacity: int | None = None, out: Tensor | None = None,
               algorithm: Algorithm = "direct", mesh: Mesh | None = None) -> Tensor:
    """Return a tensor that a mesh axis cuts along one dimension cut along dimension `dim` instead.

    `ring` sends every piece to its rank in p - 1 rounds, `direct` all at once; there is no tree.

    `all_to_all(rows, counts, capacity=n)` sends ragged blocks of the first dimension, of p positions along the axis: `counts`, integers
    [p, p], replicated or cut in the first dimension, says at [r, q] how many of its rows position r sends to q, in this order. The result
    has `capacity` rows on each rank, those that arrive first, by source and in the source's order; the others are undefined. A run in
    which more arrive ends with R104. Counts that are cut are gathered first, so all ranks know where rows begin; how many bytes rows are
    is known in the run alone, so `collectives` has the gathered counts.
    Raises: M101 for a tensor that the axis does not cut, for a dimension that is cut already; M104 as `allreduce`, and for counts or a
    capacity that do not fit.
    """
    group = _begin("all_to_all", tensor, algorithm, mesh)
    which = _cut_axis("all_to_all", tensor, axis, group.mesh)
    if isinstance(dim, Tensor):
        return _ragged(group.along(which), tensor, dim, capacity, out)
    if capacity is not None:
        raise CollectiveError("all_to_all: a capacity is for ragged blocks", here(), expected="all_to_all(rows, counts, capacity=n)")
    return _all_to_all(group.along(which), tensor, _dim("all_to_all", tensor, dim), out)


@user_call("broadcast")
@also_in_functions
def broadcast(tensor: Tensor, root: int = 0, axis: MeshAxis = None, *, algorithm: Algorithm = "tree", mesh: Mesh | None = None) -> Tensor:
    """Give every rank along a mesh axis the copy of the rank at position `root`, and return the tensor.

    Raises: M101 for a tensor that is not replicated along the axis, and for one with an array; M102 for a position that there is not.
    """
    group = _begin("broadcast", tensor, algorithm, mesh)
    layout = layout_on(tensor, group.mesh)
    free = [name for name, _ in group.mesh.axes if name not in layout.axes]
    which = _one_axis("broadcast", axis, group.mesh, free, tensor, "is replicated along")
    if not tensor.intermediate:
        raise LayoutError("broadcast: an array that is replicated is equal on every rank", here(), found=repr(tensor),
                          expected="Tensor.empty(shape, dtype, layout=...), of which each rank has a copy")
    p = group.mesh.shape[which]
    _check_number("broadcast: there is no such position", root, 0, p - 1)
    along = group.along(which)
    along.broadcast(lambda at: tensor.part(along.mesh, at), root)
    along.record("broadcast", tensor, along.sent_broadcast(along.local_bytes(tensor), root))
    return tensor


@user_call("halo")
@also_in_functions
def halo(tensor: Tensor, k: int, dim: int = 0, axis: MeshAxis = None, *, mesh: Mesh | None = None) -> Tensor:
    """Return a tensor whose part on each rank is its shard of dimension `dim` between the neighbours' nearest `k` rows.

    A part has ceildiv(n, p) + 2 k rows: k of the rank before, the shard, k of the rank behind. Rows beyond the ends of the tensor are not
    written, and short shards have undefined rows behind those of the neighbour.
    Raises: M101 for a dimension that no mesh axis cuts; M104 for k below 1, or above a shard's rows.
    """
    group = _begin("halo", tensor, "direct", mesh)
    at = _dim("halo", tensor, dim)
    layout = layout_on(tensor, group.mesh)
    cut = layout.dist[at]
    if not isinstance(cut, Shard):
        raise LayoutError(f"halo: dimension {at} is not cut, so there are no neighbours", here(), found=repr(layout),
                          expected="a dimension that a mesh axis cuts")
    along = group.along(_cut_axis("halo", tensor, cut.axis if axis is None else axis, group.mesh))
    return _halo(along, tensor, at, k)


# -- where a collective stands -----------------------------------------------------------------------------------------
def _begin(what: str, tensor: object, algorithm: object, mesh: object) -> RankGroup:
    """Return the ranks of a collective.

    Raises: M104 for what is no Tensor; M101 for one without a layout; M104 without a mesh, in a loop over ranks, under a condition that
    reads what differs by rank, or for an unknown algorithm.
    """
    trace = current_trace(f"{what}(...)")
    if not isinstance(tensor, Tensor):
        raise CollectiveError(f"{what} takes a whole tensor", here(), expected="a Tensor with a layout",
                                found=f"{type(tensor).__name__}: {tensor!r:.60}")
    if tensor.layout is None:
        raise LayoutShapeError(f"{what}: `{tensor.ref.shown}` says nothing of ranks", here(), found=repr(tensor),
                          expected="a tensor with a layout")
    if algorithm not in _ALGORITHMS:
        raise CollectiveError(f"{what}: there is no such algorithm", here(), expected=" or ".join(_ALGORITHMS), found=f"{algorithm!r:.60}")
    if mesh is not None:
        if not isinstance(mesh, Mesh):
            raise CollectiveError(f"{what} takes a mesh", here(), expected="mesh=Mesh(x=2)", found=f"{mesh!r:.60}")
        trace.ranks.use(mesh)
    if trace.ranks.mesh is None:
        raise CollectiveError(f"{what}: no mesh is known here", here(), help="say mesh=mesh, or loop `for r in P(mesh)` before")
    if trace.ranks.loops:
        raise CollectiveError(f"{what} in a loop over the ranks", here(), help="write it outside of the loop: all ranks take part at once")
    _refuse_conditions(what, trace.ranks)
    if any(not isinstance(extent, int) for extent in tensor.shape):
        raise CollectiveError(f"{what} of a tensor whose shape only a run knows", here(), expected="a shape of numbers", found=repr(tensor))
    if (tensor.rank == 0 and what != "relayout") or 0 in tensor.ref.shape:
        raise CollectiveError(f"{what} of a tensor without elements or dimensions", here(), found=repr(tensor))
    return RankGroup(Mover(trace, trace.ranks.mesh, user_frame(), here()), trace.ranks, 0, str(algorithm))


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


def _check_number(problem: str, value: object, least: int, most: int) -> int:
    """Return a whole number between two.

    Raises: M104 for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise CollectiveError(problem, here(), expected=f"a whole number, {least} .. {most}", found=f"{value!r:.60}")
    return value


def _dim(what: str, tensor: Tensor, dim: object) -> int:
    if isinstance(dim, bool) or not isinstance(dim,
                                               int) or not -tensor.rank <= dim < tensor.rank:
        raise CollectiveError(f"{what}: there is no such dimension", here(), expected=f"a whole number below {tensor.rank}",
                              found=f"{dim!r:.60}")
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
                      also=() if tensor.layout is None else made_at(tensor.layout, "the layout was made here"))


def _partial_axis(what: str, tensor: Tensor, axis: MeshAxis, mesh: Mesh) -> int:
    return _one_axis(what, axis, mesh, [str(one.axis) for one in layout_on(tensor, mesh).partial], tensor, "is partial along")


def _cut_axis(what: str, tensor: Tensor, axis: MeshAxis, mesh: Mesh) -> int:
    cut = [str(one.axis) for one in layout_on(tensor, mesh).dist if isinstance(one, Shard)]
    return _one_axis(what, axis, mesh, cut, tensor, "is cut along")


# -- expansions --------------------------------------------------------------------------------------------------------
def _chunk_dim(tensor: Tensor, group: RankGroup) -> tuple[int, int]:
    """Return the dimension that is cut into chunks, and the most rows of a rank's part in it.

    Chunks of many rows of the first dimension stand one behind the other; of what has few rows, the longest dimension is cut.
    """
    layout = layout_on(tensor, group.mesh)
    most = [extent if not isinstance(cut, Shard) else -(-extent // group.mesh.shape[group.mesh.axis(cut.axis)])
            for extent, cut in zip(tensor.ref.shape, layout.dist, strict=True)]
    dim = 0 if most[0] >= _ROWS_OF_A_CHUNK * group.p else max(range(len(most)), key=lambda number: (most[number], -number))
    return dim, most[dim]


def _reduce(group: RankGroup, tensor: Tensor, dim: int, most: int, op: str, owner: Part) -> None:
    """Write, to the part `owner` of each rank, the total of its chunk: by a ring, or directly."""
    p, mesh, layout = group.p, group.mesh, layout_on(tensor, group.mesh)

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
        inbox = group.scratch(tensor, layout.with_dim(dim, Replicate()), shape)

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
            q = modulo(at[group.axis] + (2 * p - 2) - step, p)
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


def _reduce_to_first(group: RankGroup, tensor: Tensor, op: str) -> Part:
    """Add pairs of ranks, and pairs of pairs; return the parts whose position 0 has the total."""
    mesh, layout = group.mesh, layout_on(tensor, group.mesh)
    total, inbox = group.scratch(tensor, layout), group.scratch(tensor, layout)

    def sums(at: Sequence[Coordinate]) -> TensorView:
        return total.part(mesh, at)

    def box(at: Sequence[Coordinate]) -> TensorView:
        return inbox.part(mesh, at)

    for at in group.all():
        group.local(sums, lambda at: tensor.part(mesh, at), at)
    for first, apart, n in tree_levels(group.p):
        for at in group.all(n=n):
            to = group.moved(at, at[group.axis] * first)
            group.send(box, sums, to, group.moved(at, at[group.axis] * first + apart))
            group.add(sums, box, to, op)
    return sums


def _sent_to_first(group: RankGroup, whole: Sent) -> Sent:
    """Return what a rank sends up a tree: its part, unless it is the first one."""
    return lambda at: whole(at) * (1 - is_at(at[group.axis], 0) if group.p > 1 else 0)


def _sent_chunks(group: RankGroup, tensor: Tensor, dim: int, left_out: int) -> Sent:
    """Return the bytes of a rank's part without the chunk `left_out` ranks on: what it sends in one round of a ring."""
    whole, row = group.local_bytes(tensor), group.local_bytes(tensor, dim)
    return lambda at: whole(at) - row(at) * group.chunk_rows(tensor, dim, group.next(at, left_out), at)


def _plus(*sent: Sent) -> Sent:
    def of(at: Sequence[Coordinate]) -> Count:
        total: Count = 0
        for one in sent:
            total = total + one(at)
        return total
    return of


def _allreduce(group: RankGroup, tensor: Tensor, _: int | None, out: Tensor | None) -> Tensor:
    layout = layout_on(tensor, group.mesh)
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
                     lambda at: row(at) * group.chunk_rows(tensor, dim, at[group.axis], at) * (group.p - 1))
    finish()
    group.record("allreduce", tensor, sent)
    return made


def _gather(group: RankGroup, part: Part, dim: int, most: int) -> None:
    """Bring every chunk of the parts, which its own rank has, to all ranks."""
    p = group.p
    if p == 1:
        return
    if group.algorithm == "direct":
        for at in group.all():
            for away in P(p - 1, names="source"):
                q = modulo(at[group.axis] + 1 + away, p)
                chunk = group.chunk(part, dim, most, _always(q))
                group.send(chunk, chunk, at, group.moved(at, q))
        return
    for step in P.seq(p - 1, names="step"):
        for at in group.all():
            chunk = group.chunk(part, dim, most, _always(modulo(at[group.axis] + (2 * p - 1) - step, p)))
            group.send(chunk, chunk, at, group.moved(at, group.next(at, p - 1)))


def _reduce_scatter(group: RankGroup, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    layout = layout_on(tensor, group.mesh)
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
        sent = _plus(_sent_to_first(group, whole), lambda at: is_at(at[group.axis], 0) * (
            whole(at) - row(at) * group.chunk_rows(tensor, dim, 0, at)))
    else:
        _reduce(group, tensor, dim, most, op, part)
        sent = _sent_chunks(group, tensor, dim, 0)
    finish()
    group.record("reduce_scatter", tensor, sent)
    return made


def _allgather(group: RankGroup, tensor: Tensor, _: int | None, out: Tensor | None) -> Tensor:
    layout = layout_on(tensor, group.mesh)
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
        sent = _sent_chunks(group, made, dim, 1) if group.algorithm == "ring" else lambda at: own(at) * (group.p - 1)
    finish()
    group.record("allgather", tensor, sent)
    return made


def _all_to_all(group: RankGroup, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    layout = layout_on(tensor, group.mesh)
    before = layout.dim_of(group.name)
    assert before is not None and dim is not None
    if group.algorithm == "tree":
        raise CollectiveError("all_to_all has no tree", here(), expected="ring or direct",
                              found="tree")
    if dim == before:
        raise CollectiveError("all_to_all: the dimension is cut along this axis already", here(), expected="another one", found=f"{dim}")
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
                exchange(at, modulo(at[group.axis] + step, p))
    finish()
    row = group.local_bytes(tensor, dim)
    group.record("all_to_all", tensor, lambda at: row(at) * (
        shape[dim] - group.chunk_rows(tensor, dim, at[group.axis], at)))
    return made


def _ragged(group: RankGroup, rows: Tensor, counts: Tensor, given: object, out: Tensor | None) -> Tensor:
    p, layout = group.p, layout_on(rows, group.mesh)
    if layout.dim_of(group.name) != 0 or group.mesh.size != p or out is not None:
        raise CollectiveError("all_to_all of ragged blocks does not take these rows", here(), found=repr(layout),
                              expected="rows cut in dimension 0, on a mesh of one axis, without out=")
    cut = None if counts.layout is None else layout_on(counts, group.mesh)
    of_rank = TensorLayout((Shard(group.name), Replicate()))
    if counts.ref.shape != (p, p) or not counts.dtype.is_integer or cut not in (of_rank, TensorLayout.replicated(2)):
        raise CollectiveError("all_to_all: the counts do not fit", here(), found=f"{list(counts.ref.shape)} {counts.dtype}, {cut!r}",
                              expected=f"integers [{p}, {p}], replicated or cut in dimension 0")
    capacity = _check_number("all_to_all of ragged blocks has no capacity", given, 1, 1 << 40)
    known = counts if cut != of_rank else _allgather(RankGroup(group.mover, group.ranks, group.axis, "direct"), counts, None, None)
    made = group.scratch(rows, layout, (p * capacity, *rows.ref.shape[1:]))
    most = min(capacity, -(-rows.ref.shape[0] // p))

    def block(part: TensorView, start: Count, count: Count) -> TensorView:
        view: TensorView = part[start:start + count]
        return view.clip(most, *(None,) * (view.rank - 1))

    for to in range(p):
        table = known.part(group.mesh, (to,))
        for of in reversed(range(p)):          # the last block first: that it fits says that all do
            first = sum((table[of, q] for q in range(to)), start=Symbolic(s.Const(0)))
            begin = sum((table[source, to] for source in range(of)), start=Symbolic(s.Const(0)))
            target = block(made.part(group.mesh, (to,)), begin, table[of, to])
            group.mover.copy(target, block(rows.part(group.mesh, (of,)), first, table[of, to]), to, of)
    return made


def _own_part(group: RankGroup, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    """Cut a replicated tensor: every rank copies its own part, and nothing is sent."""
    layout = layout_on(tensor, group.mesh)
    assert dim is not None
    made, part, finish = group.result("relayout", tensor, layout.with_axis(group.name, dim=dim), out)
    most = tensor.ref.shape[dim]
    for at in group.all():
        group.local(part, group.chunk(lambda at: tensor.part(group.mesh, at), dim, most, lambda at: at[group.axis]), at)
    finish()
    group.record("relayout", tensor, lambda at: 0)
    return made


def _halo(group: RankGroup, tensor: Tensor, dim: int, given: object) -> Tensor:
    p: int = group.p
    n: int = tensor.ref.shape[dim]
    rows = -(-n // p)
    k = _check_number("halo: a neighbour does not have so many rows", given, 1, rows)
    high = rows + 2 * k
    shape = list(tensor.ref.shape)
    shape[dim] = p * high
    made = group.scratch(tensor, layout_on(tensor, group.mesh), shape)

    def rows_of(part: TensorView, start: Count, count: Count, most: int) -> TensorView:
        view: TensorView = part[(slice(None),) * dim + (slice(start, start + count),)]
        return view if isinstance(count, int) and isinstance(view.shape[dim], int) else view.clip(
            *(most if number == dim else None for number in range(view.rank)))

    def size(at: Coordinate) -> Count:
        return rows if n % p == 0 else maximum(0, minimum(rows, n - at * rows))

    def target(at: Sequence[Coordinate]) -> TensorView:
        return made.part(group.mesh, at)

    def source(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(group.mesh, at)

    def pair(at: Sequence[Coordinate], of: Sequence[Coordinate], start: Count, first: Count, count: Count, most: int) -> None:
        group.send(lambda there: rows_of(target(there), start, count, most),
                   lambda there: rows_of(source(there), first, count, most), at, of)

    for at in group.all():
        pair(at, at, k, 0, size(at[group.axis]), rows)
    if p > 1:
        for at in group.all(n=p - 1):          # from the rank before, which is full unless this one is empty
            c = at[group.axis]
            own, before = size(c + 1), size(c)
            count = k if n % p == 0 else minimum(k, before) * minimum(1, own)
            pair(group.moved(at, c + 1), at, k - count, before - count, count, k)
        for at in group.all(n=p - 1):          # from the rank behind
            c = at[group.axis]
            count = k if n % p == 0 else minimum(k, size(c + 1))
            pair(at, group.moved(at, c + 1), k + size(c), 0, count, k)
    row = group.local_bytes(tensor, dim)

    def sent(at: Sequence[Coordinate]) -> Count:
        c = at[group.axis]
        behind = minimum(k, size(c)) * minimum(1, size(c + 1)) * is_below(c + 1, p)
        return row(at) * (behind + minimum(k, size(c)) * (1 - is_at(c, 0)))

    group.record("halo", tensor, sent)
    return made


# -- relayout ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _AxisStep:
    """What happens along one mesh axis. `kind`: a key of `_STEPS`; `dim`: the dimension that is cut then."""

    kind: str
    dim: int | None = None


_STEPS: dict[str, Callable[[RankGroup, Tensor, int | None, Tensor | None], Tensor]] = {
    "allreduce": _allreduce, "reduce_scatter": _reduce_scatter, "allgather": _allgather, "all_to_all": _all_to_all, "cut": _own_part}


def _steps(start: TensorLayout, wanted: TensorLayout, mesh: Mesh) -> list[tuple[int, _AxisStep]]:
    """Return what leads from one layout to another one: an axis and its change, in an order in which no dimension is cut twice."""
    steps: list[tuple[int, _AxisStep]] = []
    now = start
    left = [number for number in range(len(mesh.axes))]
    while left:
        for number in left:
            change, then = _change(now, wanted, mesh.axes[number][0])
            if then is not None:
                break
        else:      # two axes change places: the first one is gathered, then cut anew
            number = left[0]
            change, then = _AxisStep("allgather"), now.with_axis(mesh.axes[number][0])
            left.append(number)
        left.remove(number)
        if change is not None and then is not None:
            steps.append((number, change))
            now = then
    return steps


def _change(now: TensorLayout, wanted: TensorLayout, axis: str) -> tuple[_AxisStep | None, TensorLayout | None]:
    """Return the change along one axis and the layout behind it; no layout while another axis cuts the dimension."""
    dim, target = now.dim_of(axis), wanted.dim_of(axis)
    is_partial = now.reduction_of(axis) is not None
    if dim == target and is_partial == (wanted.reduction_of(axis) is not None):
        return None, now
    if target is None:
        return _AxisStep("allreduce" if is_partial else "allgather"), now.with_axis(axis)
    cut = now.dist[target]
    if isinstance(cut, Shard) and cut.axis != axis:
        return None, None
    kind = "reduce_scatter" if is_partial else "cut" if dim is None else "all_to_all"
    return _AxisStep(kind, target), now.with_axis(axis, dim=target)
