"""Write the tasks that move and combine parts of tensors: `copy(A.on(r), B.on(q))`, and the steps of collectives.

A part of any rank becomes loops over its leading dimensions and over pieces of a matrix, each a task of a kernel of this module. A copy
between two ranks is a task of the rank that receives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import FrameType
from typing import Any

from pto_wsp.calls import user_call
from pto_wsp.errors import CollectiveError, RankError
from pto_wsp.ir import flow
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import at_most
from pto_wsp.ir.mesh import Mesh, OnRank, RowLimit
from pto_wsp.ir.symbolic import Symbolic, as_scalar, ceildiv, minimum
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries.elementwise import add, maximum
from pto_wsp.ops.entries.elementwise import minimum as smaller
from pto_wsp.ops.entry import activate
from pto_wsp.source import UNKNOWN, Span, here, user_frame
from pto_wsp.trace.kernel.tile_value import TileParamRef
from pto_wsp.trace.kernel.trace import KernelTrace
from pto_wsp.trace.workload.loops import P
from pto_wsp.trace.workload.trace import WorkloadTrace, current_trace
from pto_wsp.values import dataclass

MOST_ELEMENTS = 1 << 16     # of the piece that one task moves: whole rows, as many as fit, so that it is one run of bytes
_COMBINES = {"sum": add, "max": maximum, "min": smaller}


@lru_cache(maxsize=256)
def move_kernel(shape: tuple[int, int], dtype: DType, combine: str) -> k.Kernel:
    """Return the kernel that stores a tile, or combines it with what is there: `sum`, `max` or `min`; `combine` "" stores it.

    In a combination the tile that is there comes first.
    """
    tile = TileType(*shape, dtype)
    given = k.TileParam("part", k.Role.IN, tile, UNKNOWN)
    result = k.TileParam("total" if combine else "out", k.Role.INOUT if combine else k.Role.OUT, tile, UNKNOWN)
    name = {"": "copy_part", "sum": "add_part"}.get(combine, f"{combine}_part")
    trace = KernelTrace(name, [given.name, result.name])
    with activate(trace):
        value: Any = TileParamRef(trace, given)
        trace.store_whole(result, _COMBINES[combine](TileParamRef(trace, result), value) if combine else value)
    return k.Kernel(name, (given, result), trace.body())


@dataclass(slots=True)
class Mover:
    """Writes moves into the workload being traced, all at the user's line."""

    trace: WorkloadTrace
    mesh: Mesh
    frame: FrameType
    span: Span

    def copy(self, target: TensorView, source: TensorView, rank: object, of: object, limits: Sequence[RowLimit] = ()) -> None:
        """Copy a part that rank `of` holds to one of rank `rank`, if the numbers of rows in `limits` are below their limits."""
        self._move(target, source, OnRank(self.mesh.axes, as_scalar(rank), as_scalar(of), tuple(limits)), "")

    def combine(self, target: TensorView, source: TensorView, rank: object, op: str) -> None:
        """Combine a part with a total, both of one rank."""
        self._move(target, source, OnRank(self.mesh.axes, as_scalar(rank)), op)

    def _move(self, target: TensorView, source: TensorView, on: OnRank, op: str) -> None:
        shape = target.shape
        if not shape:        # a number is a row of one
            target, source, shape = target.reshape(1), source.reshape(1), (1,)
        if len(shape) > 2:
            for index in P(shape[0], names=f"i{len(shape)}"):
                self._move(target[index], source[index], on, op)
            return
        columns = bound_of(shape[-1])
        columns = MOST_ELEMENTS if columns is None else max(1, min(columns, MOST_ELEMENTS))
        limits = [MOST_ELEMENTS // columns, columns][2 - len(shape):]
        self._pieces(target, source, 0, limits, on, op)

    def _pieces(self, target: TensorView, source: TensorView, dim: int, limits: Sequence[int], on: OnRank, op: str) -> None:
        if dim == len(limits):
            self._task(target, source, on, op)
            return
        extent, limit = target.shape[dim], limits[dim]
        most = bound_of(extent)
        if most is not None and most <= limit:
            self._pieces(target, source, dim + 1, limits, on, op)
            return
        clips: list[object] = [None] * len(limits)
        if not (isinstance(extent, int) and extent % limit == 0):
            clips[dim] = limit
        for piece in P(ceildiv(extent, limit), names="rc"[dim - len(limits) + 2]):
            stop = (piece + 1) * limit if clips[dim] is None else minimum((piece + 1) * limit, extent)
            cut = (slice(None),) * dim + (slice(piece * limit, stop),)
            parts = [view[cut] if clips[dim] is None else view[cut].clip(*clips) for view in (target, source)]
            self._pieces(parts[0], parts[1], dim + 1, limits, on, op)

    def _task(self, target: TensorView, source: TensorView, on: OnRank, op: str) -> None:
        bounds = [bound_of(extent) for extent in target.shape]
        if any(most is None for most in bounds):
            raise CollectiveError("a part has a size that nothing bounds", self.span, found=repr(target),
                                  help=".clip(rows, cols) bounds it")
        rows, cols = ([1] * (2 - len(bounds)) + [int(most or 0) for most in bounds])[-2:]
        kernel = move_kernel((max(1, rows), max(1, cols)), target.dtype, op)
        args: list[wl.Arg] = []
        for param, view in zip(kernel.memory_params, (source, target), strict=True):
            self.trace.keep(view.owner)
            args.append(wl.ViewArg(param.name, self.trace.use(view.view, self.frame, self.span), self.span))
        handle = self.trace.new_handle(kernel.name)
        use = OnRank(on.mesh, self._named(on.rank), None if on.source is None else self._named(on.source),
                     tuple(replace(one, rows=self._named(one.rows)) for one in on.limits))
        self.trace.append(flow.Do(wl.Task(kernel, (), tuple(args), handle.id, (), self.span, "", use)))

    def _named(self, rank: s.Scalar) -> s.Scalar:
        return self.trace.use(rank, self.frame, self.span)


def bound_of(extent: object) -> int | None:
    """Return the most that an extent can be; None where nothing says."""
    if isinstance(extent, int):
        return extent
    return at_most(extent.node) if isinstance(extent, Symbolic) else None


@user_call("copy")
def copy(source: TensorView, target: TensorView) -> None:
    """Copy a part of one rank to a part of another one, or of the same: `copy(K.on(r), L.on((r + 1) % n))`.

    Parts have equal shapes and dtypes; they are parts, or views of parts, of tensors with a layout.
    Raises: M103 for what is no part of a rank; M104 for parts that differ, and for a replicated array as the target.
    """
    trace = current_trace("copy(...)")
    for which, view in (("source", source), ("target", target)):
        if not isinstance(view, TensorView):
            raise RankError(f"copy: the {which} is no part of a tensor", here(), expected="A.on(r), or a view of it",
                                    found=f"{type(view).__name__}: {view!r:.60}")
        if view.at is None:
            raise RankError(f"copy: the {which} is no part of a rank", here(), expected="A.on(r), or a view of it", found=repr(view))
    assert source.at is not None and target.at is not None
    mesh = trace.ranks.use(target.at.mesh)
    if not isinstance(target, Tensor) and not target.owner.intermediate and target.owner.layout is not None:
        free = [name for name, size in mesh.axes if size > 1 and target.owner.layout.named_on(mesh).dim_of(name) is None]
        if free:
            raise RankError(f"copy: every rank along {', '.join(free)} has a copy of the target", here(),
                            expected="a shard, or a tensor of the program", found=f"an array of layout {target.owner.layout!r}")
    check_alike("copy", source, target)
    Mover(trace, mesh, user_frame(), here()).copy(target, source, Symbolic(target.at.rank), Symbolic(source.at.rank))


def check_alike(what: str, source: TensorView, target: TensorView) -> None:
    """Check that two parts have one shape and dtype, as far as the shapes are numbers.

    Raises: M104.
    """
    shapes = (source.shape, target.shape)
    differ = len(shapes[0]) != len(shapes[1]) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(*shapes, strict=True))
    if source.dtype != target.dtype or differ:
        raise CollectiveError(f"{what}: the parts differ", here(), expected="equal shapes and dtypes",
                              found=f"{source!r:.80} and {target!r:.80}")
