"""Collectives in the body of a function on whole tensors: what they ask of layouts. On whole arrays each gives its argument, and `halo`
the argument between k rows of zeros.

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
from pto_wsp.ops.tensors import MOVE, moved, moved_shape
from pto_wsp.source import here
from pto_wsp.trace.tensor.host_arrays import is_on_arrays
from pto_wsp.trace.tensor.trace import current_trace, is_tracing

C = TypeVar("C", bound=Callable[..., Any])


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

    Raises: M109 for options of workloads, and for what is no dimension or count; M105 for what is no layout or axis.
    """
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
    if what in ("reduce_scatter", "all_to_all", "halo"):
        attrs.append(("dim", _dim(what, given.get("dim", 0), value.ndim)))
    for name, least in (("k", 1), ("root", 0)):
        if name in defaults:
            attrs.append((name, _count(what, name, given.get(name, defaults[name]), least)))
    if what == "relayout":
        attrs.append(("cuts", _cuts(given["layout"], value.ndim)))
    if is_on_arrays():
        return moved(value, tuple(attrs))
    trace = current_trace(what)
    read = trace.value(what, value)
    return trace.apply(MOVE, (read,), moved_shape(read.extents, tuple(attrs)), read.dtype, tuple(attrs))


def _dim(what: str, dim: object, rank: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise FunctionCollectiveError(f"{what}: there is no such dimension", here(), expected=f"a whole number below {rank}",
                                      found=f"{dim!r:.60}")
    return dim % rank


def _count(what: str, name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise FunctionCollectiveError(f"{what}: {name} is a number of the function", here(), expected=f"a whole number, at least {least}",
                                      found=f"{value!r:.60}")
    return value


def _cuts(layout: object, rank: int) -> tuple[str | int, ...]:
    """Return for each dimension the axis that cuts it, or ""."""
    if not isinstance(layout, TensorLayout) or layout.rank != rank or layout.partial:
        raise LayoutShapeError("relayout takes a layout of the tensor's dimensions", here(), found=f"{layout!r:.80}",
                               expected=f"a sharded or replicated TensorLayout of rank {rank}")
    return tuple("" if isinstance(one, Replicate) else one.axis for one in layout.dist)
