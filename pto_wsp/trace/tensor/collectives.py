"""Collectives in the body of a function on whole tensors: what they ask of layouts. On whole arrays each gives its argument.

    return allreduce(silu(x @ up) @ down, "y")        # up: columns cut along y, down: rows; the product is a partial sum over y

A statement keeps what the user said; the layouts that arrive there are known when the function is placed on a mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from pto_wsp.errors import FunctionCollectiveError, LayoutShapeError
from pto_wsp.ir.tensor_layout import Replicate, Shard, TensorLayout
from pto_wsp.ops.tensors import MOVE
from pto_wsp.source import here
from pto_wsp.trace.tensor.host_arrays import is_on_arrays
from pto_wsp.trace.tensor.trace import current_trace, is_tracing

C = TypeVar("C", bound=Callable[..., Any])

_NOT_HERE = {
    "broadcast": ("every rank has the same replicated tensor already",
                  "leave it out; of a tensor that ranks have parts or terms of, allgather or allreduce gives every rank the whole"),
    "halo": ("the rows of neighbours are parts of no whole tensor",
             "allgather(t) and slices of it, or the step as a workload: halo(t, k), then `for r in P(mesh)`")}


def also_in_functions(function: C) -> C:
    """Return a collective of workloads that is a statement in the body of a function on tensors, and nothing on plain arrays."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing() and not is_on_arrays():
            return function(*args, **kwargs)
        bound = parameters.bind(*args, **kwargs)
        return _moved(function.__name__, bound.arguments, {name: each.default for name, each in parameters.parameters.items()})

    return call  # type: ignore[return-value]


def _moved(what: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Return the tensor that a collective gives.

    Raises: M109 for options of workloads, and for what a function on tensors does not move; M105 for what is no layout, axis or dimension.
    """
    if what in _NOT_HERE:
        reason, help = _NOT_HERE[what]
        raise FunctionCollectiveError(f"{what} in a function on tensors: {reason}", here(), help=help)
    for option in ("out", "mesh", "algorithm", "capacity"):
        if given.get(option, defaults.get(option)) != defaults.get(option):
            raise FunctionCollectiveError(f"{what} in a function on tensors does not take {option}=", here(),
                                  found=f"{option}={given[option]!r:.60}",
                                  help='the plan says how: plan.but(collectives={"total": "tree"})' if option == "algorithm" else
                                  "f.using(mesh=mesh) says the mesh, f(..., out=...) where a result is written")
    attrs: list[tuple[str, Any]] = [("move", what)]
    if "axis" in defaults:
        axis = given.get("axis")
        if axis is not None:
            attrs.append(("axis", Shard(axis).axis))       # M105 for what is none
    value = given["tensor"]
    if what in ("reduce_scatter", "all_to_all"):
        attrs.append(("dim", _dim(what, given.get("dim", 0), value.ndim)))
    if what == "relayout":
        attrs.append(("cuts", _cuts(given["layout"], value.ndim)))
    if is_on_arrays():
        return value
    trace = current_trace(what)
    read = trace.value(what, value)
    return trace.apply(MOVE, (read,), read.extents, read.dtype, tuple(attrs))


def _dim(what: str, dim: object, rank: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise FunctionCollectiveError(f"{what}: there is no such dimension", here(), expected=f"a whole number below {rank}",
                                      found=f"{dim!r:.60}")
    return dim % rank


def _cuts(layout: object, rank: int) -> tuple[str | int, ...]:
    """Return for each dimension the axis that cuts it, or ""."""
    if not isinstance(layout, TensorLayout) or layout.rank != rank or layout.partial:
        raise LayoutShapeError("relayout takes a layout of the tensor's dimensions", here(), found=f"{layout!r:.80}",
                               expected=f"a sharded or replicated TensorLayout of rank {rank}")
    return tuple("" if isinstance(one, Replicate) else one.axis for one in layout.dist)
