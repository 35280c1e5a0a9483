"""Reductions of NumPy along any axes of traced tensors, softmax, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto_wsp.calls import user_call
from pto_wsp.errors import ExtentError, TensorAxisError
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import product
from pto_wsp.ir.scalar import Const, Scalar
from pto_wsp.ir.view import Permute, Pick
from pto_wsp.ops import typing
from pto_wsp.ops.entries import axes, formulas
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.elementwise import maximum as larger
from pto_wsp.ops.entries.elementwise import minimum as smaller
from pto_wsp.ops.entries.formula import computed, in_dtype
from pto_wsp.ops.entries.index import gather
from pto_wsp.ops.rounding import ALL
from pto_wsp.source import here
from pto_wsp.trace.tensor.along import Axes, along, axes_of, moved_back, moved_last, refolded, value_of, without
from pto_wsp.trace.tensor.trace import current_trace
from pto_wsp.trace.tensor.value import TensorValue


def _kept(keepdims: object, keepdim: object) -> bool:
    return keepdims is True or keepdim is True or (isinstance(keepdims, np.bool_) and bool(keepdims))


def reduced(name: str, value: TensorValue, dims: Axes, keepdims: bool, function: Callable[..., Any], *,
            nonempty: bool = False) -> TensorValue:
    """Return a reduction along dimensions, one after the other: `function(x, 1)` along the last, `function(x, 0)` along the one before."""
    missing = check_elements(name, value, dims) if nonempty else None
    result = value
    for at in reversed(dims):
        if at == result.rank - 1:
            result = function(result, 1)
        elif at == result.rank - 2 and result.extents[-1] == Const(1) and any(one != Const(1) for one in result.extents[:at]):
            result = _reduced_before(at + 1, result, function, 1)      # a column is a row
        elif at == result.rank - 2:
            result = function(result, 0)
        elif result.extents[at + 1] != Const(1) and all(one == Const(1) for one in result.extents[at + 2:]):
            result = _reduced_before(at + 2, result, function, 0)      # a matrix, and what is reduced already
        else:
            last = function(moved_last(result, at), 1)
            result = moved_back(last, at)
    result = with_elements(result, missing)
    return result if keepdims else without(result, dims)


def _reduced_before(first: int, value: TensorValue, function: Callable[..., Any], axis: int) -> TensorValue:
    """Return a reduction along an axis of the dimensions before `first`; the dimensions from `first` on have extent 1, and stay."""
    behind = range(first, value.rank)
    result: TensorValue = function(without(value, tuple(behind)), axis)
    for at in behind:
        result = result.then(tf.Insert(at))
    return result


def check_elements(name: str, value: TensorValue, dims: Axes, count: int = 1) -> Scalar | None:
    """Check that each of some dimensions has `count` elements; each call checks an extent of symbols.

    Returns where only the task knows: a scalar that is negative where elements are missing that a result needs, and else 0.
    Raises: J201.
    """
    trace = current_trace(name)
    missing: Scalar | None = None
    for at in dims:
        extent = value.extents[at]
        others = [one for k, one in enumerate(value.extents) if k not in dims and not isinstance(one, Const)]
        if extent == Const(0):
            raise ExtentError(f"`{name}` of nothing", here(), expected="at least one element along the axis", found=repr(value))
        if isinstance(extent, Const) or (trace.facts.has_element(extent) if count == 1 else trace.facts.is_at_most(Const(count), extent)):
            continue
        if len(trace.blocks.open) == 1 and all(isinstance(leaf, Const | s.SymbolRef) for leaf in s.leaves(extent)):
            trace.facts.promise(s.binary(s.Op.GE, extent, Const(count)))
        elif count > 1 or not any(trace.facts.are_same(one, extent) for one in others):      # else there is no result without elements
            short = s.sub(s.minimum(extent, Const(count)), Const(count))
            if others:
                short = s.maximum(short, s.sub(Const(0), product(others)))
            missing = short if missing is None else s.minimum(missing, short)
    return missing


def with_elements(result: TensorValue, missing: Scalar | None) -> TensorValue:
    """Return a result that a task refuses where elements are missing: it is taken at places 0, 1, …, or at places from `missing` on."""
    if missing is None:
        return result
    trace = current_trace(gather.name)
    column = result if result.rank and isinstance(result.extents[-1], Const) else result.then(tf.Insert(result.rank))
    places = trace.counted(column.extents[-1], DType.I32, missing)
    for _ in range(column.rank - 1):
        places = places.then(tf.Insert(0))
    taken = trace.apply(gather.name, (column, places), column.extents, result.dtype, (("axis", 1),))
    return taken if column is result else taken.then(Pick(result.rank, Const(0)))


def merged_last(value: TensorValue, dims: Axes) -> TensorValue:
    """Return the elements with dimensions joined into one, which is the last; the others stand before."""
    others = tuple(k for k in range(value.rank) if k not in dims)
    turned = value if (*others, *dims) == tuple(range(value.rank)) else value.then(Permute((*others, *dims)))
    shape = (*(value.extents[k] for k in others), product(value.extents[k] for k in dims))
    return refolded(turned, shape)


def _by_formula(name: str, formula: Callable[..., Any], *, wide: bool = False, nonempty: bool = False) -> Callable[..., TensorValue]:
    """Return a reduction by a formula of the op table, which keeps dimensions. `wide`: halves round once, however many axes there are."""
    def reduce(x: object, axis: object, dim: object, keepdims: bool, **options: object) -> TensorValue:
        value = value_of(name, x)
        dims = axes_of(name, value, axis, dim)
        if not dims:
            return value
        several = wide and len(dims) > 1
        start = computed(value) if several else value
        result = reduced(name, start, dims, keepdims, lambda v, at: formula(v, at, keepdims=True, **options),  # type: ignore[arg-type]
                         nonempty=nonempty)
        return in_dtype(result, value.dtype) if several and not value.dtype.is_bool else result  # type: ignore[return-value]
    return reduce


_sum, _prod, _mean = (_by_formula(f.__name__, f, wide=True) for f in (axes.sum, axes.prod, axes.mean))
_amax, _amin = (_by_formula(f.__name__, f, nonempty=True) for f in (axes.amax, axes.amin))


def _mask_of(value: Any) -> Any:
    return value if value.dtype.is_bool else value != 0


# by counts, which are 0 of nothing: an extreme of nothing says nothing
_count: Callable[..., Any] = axes.sum
_any = _by_formula("any", lambda v, at, keepdims: _count(_mask_of(v), at, keepdims=keepdims) > 0)
_all = _by_formula("all", lambda v, at, keepdims: _count(~_mask_of(v), at, keepdims=keepdims) == 0)


def _in(name: str, x: object, dtype: object) -> object:
    return x if dtype is None else cast(value_of(name, x), typing.as_dtype(name, dtype, ALL))


@user_call("sum")
def sum_(x: object, axis: object = None, dtype: object = None, *, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> TensorValue:
    """Return the sum along axes, in the tensor's dtype or in `dtype`; of a mask, how many hold."""
    return _sum(_in("sum", x, dtype), axis, dim, _kept(keepdims, keepdim))


@user_call("prod")
def prod(x: object, axis: object = None, dtype: object = None, *, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> TensorValue:
    """Return the product along axes."""
    return _prod(_in("prod", x, dtype), axis, dim, _kept(keepdims, keepdim))


@user_call("mean")
def mean(x: object, axis: object = None, dtype: object = None, *, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> TensorValue:
    """Return the mean along axes; floats only."""
    return _mean(_in("mean", x, dtype), axis, dim, _kept(keepdims, keepdim))


def _extreme(name: str, x: object, axis: object, keepdims: object, dim: object, keepdim: object) -> TensorValue:
    if isinstance(axis, TensorValue):
        return (larger if name == "max" else smaller)(x, axis)  # type: ignore[return-value]
    if dim is not None:
        raise TensorAxisError(f"`{name}`: torch's {name} along `dim` is a pair of values and places", here(), found=f"dim={dim!r}",
                              expected=f"axis={dim!r}, for the values", help=f"torch.{name}(x, dim={dim!r}) gives the pair")
    return (_amax if name == "max" else _amin)(x, axis, None, _kept(keepdims, keepdim))


@user_call("max")
def max_(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return the largest element along axes."""
    return _extreme("max", x, axis, keepdims, dim, keepdim)


@user_call("min")
def min_(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return the smallest element along axes."""
    return _extreme("min", x, axis, keepdims, dim, keepdim)


@user_call("amax")
def amax(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return the largest element along axes."""
    return _amax(x, axis, dim, _kept(keepdims, keepdim))


@user_call("amin")
def amin(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return the smallest element along axes."""
    return _amin(x, axis, dim, _kept(keepdims, keepdim))


@user_call("any")
def any_(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return a mask: whether any element along axes holds, or is not 0."""
    return _any(x, axis, dim, _kept(keepdims, keepdim))


@user_call("all")
def all_(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return a mask: whether all elements along axes hold, or are not 0."""
    return _all(x, axis, dim, _kept(keepdims, keepdim))


def _merged(name: str, x: object, axis: object, dim: object, keepdims: bool, function: Callable[[TensorValue], Any], *,
            nonempty: bool = False) -> TensorValue:
    """Return a reduction along axes that are joined into one."""
    value = value_of(name, x)
    dims = axes_of(name, value, axis, dim)
    missing = check_elements(name, value, dims) if nonempty else None
    if len(dims) == 1:
        result = with_elements(moved_back(function(moved_last(value, dims[0])), dims[0]), missing)
        return result if keepdims else without(result, dims)
    result = with_elements(function(merged_last(value, dims)).then(Pick(value.rank - len(dims), Const(0))), missing)
    if keepdims:
        for at in dims:
            result = result.then(tf.Insert(at))
    return result


@user_call("argmax")
def argmax(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return the place of the first largest element along an axis, i32; without an axis, in the tensor row by row."""
    return _merged("argmax", x, axis, dim, _kept(keepdims, keepdim), lambda v: axes.argmax(v, 1, keepdims=True), nonempty=True)


@user_call("argmin")
def argmin(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return the place of the first smallest element along an axis, i32; without an axis, in the tensor row by row."""
    return _merged("argmin", x, axis, dim, _kept(keepdims, keepdim), lambda v: axes.argmin(v, 1, keepdims=True), nonempty=True)


def _spread(name: str, x: object, axis: object, ddof: object, keepdims: object, dim: object) -> TensorValue:
    if dim is not None:
        raise TensorAxisError(f"`{name}`: torch's {name} divides by n - 1 unless told otherwise, NumPy's by n", here(),
                              found=f"dim={dim!r}",
                              expected="axis= and ddof=, as NumPy", help=f"torch.{name}(x, dim={dim!r}) means torch's")
    formula = axes.var if name == "var" else axes.std
    return _merged(name, x, axis, None, _kept(keepdims, False), lambda v: formula(v, 1, ddof=ddof, keepdims=True))


@user_call("var")
def var(x: object, axis: object = None, *, ddof: object = 0, keepdims: object = False, dim: object = None) -> TensorValue:
    """Return the variance along axes: squared distances from the mean, divided by their number less `ddof`."""
    return _spread("var", x, axis, ddof, keepdims, dim)


@user_call("std")
def std(x: object, axis: object = None, *, ddof: object = 0, keepdims: object = False, dim: object = None) -> TensorValue:
    """Return the standard deviation along axes."""
    return _spread("std", x, axis, ddof, keepdims, dim)


@user_call("logsumexp")
def logsumexp(x: object, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> TensorValue:
    """Return log(sum(exp(x))) along axes, with the largest element subtracted before."""
    return _merged("logsumexp", x, axis, dim, _kept(keepdims, keepdim), lambda v: formulas.logsumexp(v, 1, keepdims=True))


@user_call("softmax")
def softmax(x: object, axis: object = None, *, dim: object = None) -> TensorValue:
    """Return exp(x) divided by its sum along an axis, the last unless given; the largest element is subtracted before."""
    return along("softmax", x, -1 if axis is None and dim is None else axis, dim, lambda v: formulas.softmax(v, 1))


@user_call("log_softmax")
def log_softmax(x: object, axis: object = None, *, dim: object = None) -> TensorValue:
    """Return the logarithm of softmax along an axis, the last unless given."""
    return along("log_softmax", x, -1 if axis is None and dim is None else axis, dim, lambda v: formulas.log_softmax(v, 1))


@user_call("cumsum")
def cumsum(x: object, axis: object = None, dtype: object = None, *, dim: object = None) -> TensorValue:
    """Return running sums along an axis; without one, of the elements row by row."""
    value = value_of("cumsum", _in("cumsum", x, dtype))
    if value.dtype.is_bool:
        value = cast(value, DType.I32)  # type: ignore[assignment]
    if axis is None and dim is None:
        value, axis = refolded(value, (product(value.extents),)), 0
    trace = current_trace("cumsum")
    return along("cumsum", value, axis, dim, lambda v: trace.apply("cumsum", (v,), v.extents, v.dtype, (("axis", 1),)))
