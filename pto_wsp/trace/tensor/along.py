"""Bring an axis to where an op works: dimensions by number, views that move them, other shapes of the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pto_wsp.errors import TensorAxisError
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.extents import same
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.view import Permute, Pick
from pto_wsp.source import here
from pto_wsp.trace.tensor.trace import TensorTrace, current_trace
from pto_wsp.trace.tensor.value import TakenCopy, TensorValue

Axes: TypeAlias = tuple[int, ...]


def value_of(name: str, x: object) -> TensorValue:
    """Return a tensor as it may be read here."""
    return current_trace(name).value(f"`{name}`", x)


def axes_of(name: str, value: TensorValue, axis: object, dim: object = None) -> Axes:
    """Return the dimensions that `axis` (torch: `dim`) names, rising; all for None.

    Raises: J203 for what is no axis of the tensor.
    """
    if axis is not None and dim is not None:
        raise TensorAxisError(f"`{name}`: axis and dim are the same option", here(), expected="one of them",
                              found=f"axis={axis!r}, dim={dim!r}")
    given = dim if axis is None else axis
    if given is None:
        return tuple(range(value.rank))
    items = tuple(given) if isinstance(given, tuple | list) else (given,)
    found = [whole_number(item) for item in items]
    known = [at % value.rank for at in found if at is not None and -value.rank <= at < value.rank]
    if len(known) < len(items) or len(set(known)) < len(items) or not items:
        raise TensorAxisError(f"`{name}`: no axis of `{value.name}`", here(), found=repr(given),
                              expected=f"{-value.rank} .. {value.rank - 1}, each once" if value.rank else "no axis: it has no dimension")
    return tuple(sorted(known))


def one_axis(name: str, value: TensorValue, axis: object, dim: object = None) -> int:
    """Return the dimension that `axis` or `dim` names.

    Raises: J203 for None and for several.
    """
    found = axes_of(name, value, axis, dim)
    if len(found) != 1 or (axis is None and dim is None and value.rank != 1):
        raise TensorAxisError(f"`{name}` works along one axis", here(), expected="axis=0 … or -1", found=repr(axis if dim is None else dim))
    return found[0]


def moved_last(value: TensorValue, at: int) -> TensorValue:
    """Return the view with a dimension behind all others."""
    if at == value.rank - 1:
        return value
    return value.then(Permute((*(k for k in range(value.rank) if k != at), at)))


def moved_back(value: TensorValue, at: int) -> TensorValue:
    """Return the view with its last dimension at a place: the inverse of `moved_last`."""
    if at == value.rank - 1:
        return value
    others = list(range(value.rank - 1))
    others.insert(at, value.rank - 1)
    return value.then(Permute(tuple(others)))


def along(name: str, x: object, axis: object, dim: object, function: Callable[[TensorValue], Any]) -> TensorValue:
    """Return what a function along the last dimension gives along an axis."""
    value = value_of(name, x)
    at = one_axis(name, value, axis, dim)
    result: TensorValue = function(moved_last(value, at))
    return moved_back(result, at)


def without(value: TensorValue, dims: Axes) -> TensorValue:
    """Return the view without dimensions, which have extent 1."""
    for at in reversed(dims):
        value = value.then(Pick(at, Const(0)))
    return value


def refolded(value: TensorValue, shape: tf.Extents) -> TensorValue:
    """Return the elements row by row in another shape of as many elements: a value of its own, which sees no later write."""
    if len(shape) == value.rank and all(same(a, b) for a, b in zip(shape, value.extents, strict=True)):
        return value
    trace = value.trace
    assert isinstance(trace, TensorTrace)
    made = value.then(tf.Refold(shape))
    if value.storage.writable:
        made.taken = (*made.taken, TakenCopy("a reshape", value.storage, trace.blocks.innermost.id))
    return made
