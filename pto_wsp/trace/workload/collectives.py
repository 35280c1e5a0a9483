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
from pto_wsp.ir.tensor import Tensor, live_tensor
from pto_wsp.ir.tensor_layout import Shard, TensorLayout, made_at
from pto_wsp.source import here, user_frame
from pto_wsp.trace.tensor.collectives import also_in_functions
from pto_wsp.trace.workload.expansions import (
    cut_own_part,
    expand_all_to_all,
    expand_allgather,
    expand_allreduce,
    expand_broadcast,
    expand_halo,
    expand_ragged,
    expand_reduce_scatter,
)
from pto_wsp.trace.workload.moves import Mover
from pto_wsp.trace.workload.rank_groups import RankGroup, check_number, check_out, layout_on
from pto_wsp.trace.workload.trace import current_trace
from pto_wsp.values import dataclass

Algorithm: TypeAlias = Literal["ring", "tree", "direct"]
_ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
MeshAxis: TypeAlias = "str | int | None"


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
    return expand_allreduce(group.along(which), tensor, None, out)


@user_call("reduce_scatter")
@also_in_functions
def reduce_scatter(tensor: Tensor, dim: int = 0, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
                   mesh: Mesh | None = None) -> Tensor:
    """Return the total of a tensor that is partial along a mesh axis, cut along it in dimension `dim`.

    Raises: M101 for a tensor that is not partial along the axis, for a dimension that is cut already; M104 as `allreduce`.
    """
    group = _begin("reduce_scatter", tensor, algorithm, mesh)
    which = _partial_axis("reduce_scatter", tensor, axis, group.mesh)
    return expand_reduce_scatter(group.along(which), tensor, _dim("reduce_scatter", tensor, dim), out)


@user_call("allgather")
@also_in_functions
def allgather(tensor: Tensor, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "ring",
              mesh: Mesh | None = None) -> Tensor:
    """Return a tensor that is cut along a mesh axis whole on every rank; by default the only axis that cuts it.

    Raises: M101 for a tensor that the axis does not cut; M104 as `allreduce`.
    """
    group = _begin("allgather", tensor, algorithm, mesh)
    which = _cut_axis("allgather", tensor, axis, group.mesh)
    return expand_allgather(group.along(which), tensor, None, out)


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
        return expand_ragged(group.along(which), tensor, dim, capacity, out)
    if capacity is not None:
        raise CollectiveError("all_to_all: a capacity is for ragged blocks", here(), expected="all_to_all(rows, counts, capacity=n)")
    return expand_all_to_all(group.along(which), tensor, _dim("all_to_all", tensor, dim), out)


@user_call("broadcast")
@also_in_functions
def broadcast(tensor: Tensor, root: int = 0, axis: MeshAxis = None, *, out: Tensor | None = None, algorithm: Algorithm = "tree",
              mesh: Mesh | None = None) -> Tensor:
    """Give every rank along a mesh axis the copy of the rank at position `root`, in the tensor itself or in `out`; return that tensor.

    Raises: M101 for a tensor that is not replicated along the axis, and for one with an array if `out` is not given; M104 for a position
    that there is not, and for an `out` that does not fit.
    """
    group = _begin("broadcast", tensor, algorithm, mesh)
    layout = layout_on(tensor, group.mesh)
    free = [name for name, _ in group.mesh.axes if name not in layout.axes]
    which = _one_axis("broadcast", axis, group.mesh, free, tensor, "is replicated along")
    if not tensor.intermediate and out is None:
        raise LayoutError("broadcast: an array that is replicated is equal on every rank", here(), found=repr(tensor),
                          expected="Tensor.empty(shape, dtype, layout=...), of which each rank has a copy, or out=")
    check_number("broadcast: there is no such position", root, 0, group.mesh.shape[which] - 1)
    return expand_broadcast(group.along(which), tensor, root, out)


@user_call("halo")
@also_in_functions
def halo(tensor: Tensor, k: int, dim: int = 0, axis: MeshAxis = None, *, out: Tensor | None = None, mesh: Mesh | None = None) -> Tensor:
    """Return a tensor whose part on each rank is its shard of dimension `dim` between the neighbours' nearest `k` rows.

    A part has ceildiv(n, p) + 2 k rows: k of the rank before, the shard, k of the rank behind. Rows beyond the ends of the tensor are 0.
    The rows behind follow those of a short shard, and what is left of its part is not written. `out`: the tensor of such parts that the
    result is written to.
    Raises: M101 for a dimension that no mesh axis cuts; M104 for k below 1, or above a shard's rows, and for an `out` that does not fit.
    """
    group = _begin("halo", tensor, "direct", mesh)
    at = _dim("halo", tensor, dim)
    layout = layout_on(tensor, group.mesh)
    cut = layout.dist[at]
    if not isinstance(cut, Shard):
        raise LayoutError(f"halo: dimension {at} is not cut, so there are no neighbours", here(), found=repr(layout),
                          expected="a dimension that a mesh axis cuts")
    along = group.along(_cut_axis("halo", tensor, cut.axis if axis is None else axis, group.mesh))
    return expand_halo(along, tensor, at, k, out)


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


# -- relayout ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _AxisStep:
    """What happens along one mesh axis. `kind`: a key of `_STEPS`; `dim`: the dimension that is cut then."""

    kind: str
    dim: int | None = None


_STEPS: dict[str, Callable[[RankGroup, Tensor, int | None, Tensor | None], Tensor]] = {
    "allreduce": expand_allreduce, "reduce_scatter": expand_reduce_scatter, "allgather": expand_allgather,
    "all_to_all": expand_all_to_all, "cut": cut_own_part}


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
