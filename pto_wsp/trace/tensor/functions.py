"""Functions of NumPy on traced tensors, also methods: shapes, joins, order, places; reductions are in `reductions.py`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pto_wsp.calls import user_call
from pto_wsp.errors import (
    ExtentError,
    TensorAxisError,
    TensorFunctionError,
    TensorOperandError,
    TensorOptionError,
    TensorReshapeError,
    UnboundedAxisError,
    UnsupportedDTypeError,
)
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import divided, product, simplified
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef, leaves, print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.view import Cut, Permute
from pto_wsp.ops import typing
from pto_wsp.ops.entries import formulas
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.compare import ge, le, where
from pto_wsp.ops.entries.elementwise import add, round
from pto_wsp.ops.entries.functions import sqrt
from pto_wsp.ops.entries.index import argsort as order_of
from pto_wsp.ops.entries.index import gather as _gather
from pto_wsp.ops.entries.matmul import matmul as multiplied
from pto_wsp.ops.rounding import ALL, COMPUTED
from pto_wsp.source import here
from pto_wsp.trace.tensor.along import axes_of, moved_back, moved_last, one_axis, refolded, value_of, without
from pto_wsp.trace.tensor.reductions import check_elements, sum_, with_elements
from pto_wsp.trace.tensor.trace import TensorTrace, current_trace
from pto_wsp.trace.tensor.value import ArrayRole, TakenCopy, TensorValue
from pto_wsp.trace.tensor.views import assign, cut, put

# -- shapes ------------------------------------------------------------------------------------------------------------

@user_call("reshape")
def reshape(x: object, *shape: object, newshape: object = None, order: object = "C") -> TensorValue:
    """Return the elements row by row in another shape, one extent of which may be -1."""
    value = value_of("reshape", x)
    if order != "C":
        raise TensorFunctionError("`reshape` goes row by row", here(), expected='order="C"', found=f"order={order!r}")
    given = (newshape,) if newshape is not None else shape
    items = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
    return refolded(value, _new_shape("reshape", value, tuple(items)))


def _new_shape(name: str, value: TensorValue, items: tuple[object, ...]) -> tf.Extents:
    trace = current_trace(name)
    nodes = [trace.whole(f"`{name}`: an extent", item) for item in items]
    free = [k for k, node in enumerate(nodes) if node == Const(-1)]
    whole = product(value.extents)
    if len(free) > 1 or any(isinstance(node, Const) and node.value < -1 for node in nodes):
        raise TensorReshapeError(f"`{name}`: one extent may be -1, no other is negative", here(), found=_shown(nodes))
    known = product(node for k, node in enumerate(nodes) if k not in free)
    if free:
        rest = divided(whole, known)
        if rest is None or known == Const(0):
            raise TensorReshapeError(f"`{name}`: {print_scalar(whole)} elements are not divided exactly by {print_scalar(known)}", here(),
                                     expected="extents whose product divides the number of elements, for all values of the symbols",
                                     found=f"{_shown(nodes)} of {value!r}")
        nodes[free[0]] = rest
    elif not trace.facts.are_same(whole, known):
        raise TensorReshapeError(f"`{name}`: {_shown(nodes)} has another number of elements", here(),
                                 expected=f"{print_scalar(whole)} elements", found=f"{print_scalar(known)}, from {value!r}")
    return tuple(nodes)


@user_call("ravel")
def ravel(x: object) -> TensorValue:
    """Return the elements row by row."""
    value = value_of("ravel", x)
    return refolded(value, (product(value.extents),))


@user_call("transpose")
def transpose(x: object, *axes_: object, axes: object = None) -> TensorValue:
    """Return the view with its dimensions in another order; reversed without axes."""
    value = value_of("transpose", x)
    given = (axes,) if axes is not None else axes_
    items = given[0] if len(given) == 1 and (isinstance(given[0], tuple | list) or given[0] is None) else given
    if not items:
        return value.T
    order = [whole_number(item) for item in items]
    known = [at % value.rank for at in order if at is not None and -value.rank <= at < value.rank]
    if sorted(known) != list(range(value.rank)):
        raise TensorAxisError("`transpose` takes every axis once", here(), expected=f"an order of 0 .. {value.rank - 1}", found=repr(items),
                              help="np.swapaxes(x, a, b), torch's transpose, exchanges two")
    return value.then(Permute(tuple(known)))


@user_call("swapaxes")
def swapaxes(x: object, axis1: object, axis2: object) -> TensorValue:
    """Return the view with two dimensions exchanged."""
    value = value_of("swapaxes", x)
    a, b = one_axis("swapaxes", value, axis1), one_axis("swapaxes", value, axis2)
    order = list(range(value.rank))
    order[a], order[b] = b, a
    return value.then(Permute(tuple(order)))


@user_call("moveaxis")
def moveaxis(x: object, source: object, destination: object) -> TensorValue:
    """Return the view with dimensions moved to other places; the others keep their order."""
    value = value_of("moveaxis", x)
    sources, targets = (tuple(each) if isinstance(each, tuple | list) else (each,) for each in (source, destination))
    if len(sources) != len(targets):
        raise TensorAxisError("`moveaxis` moves each axis to one place", here(), found=f"{source!r} and {destination!r}")
    axes_of("moveaxis", value, sources), axes_of("moveaxis", value, targets)
    moved = {int(at) % value.rank: int(n) % value.rank for at, n in zip(sources, targets, strict=True)}
    order = [k for k in range(value.rank) if k not in moved]
    for at, place in sorted(moved.items(), key=lambda pair: pair[1]):
        order.insert(place, at)
    return value.then(Permute(tuple(order)))


@user_call("squeeze")
def squeeze(x: object, axis: object = None, *, dim: object = None) -> TensorValue:
    """Return the view without dimensions of extent 1: all of them, or those named."""
    value = value_of("squeeze", x)
    ones = tuple(k for k, extent in enumerate(value.extents) if extent == Const(1))
    dims = ones if axis is None and dim is None else axes_of("squeeze", value, axis, dim)
    if not set(dims) <= set(ones):
        raise TensorAxisError("`squeeze` drops dimensions of extent 1", here(), expected=f"of {ones}", found=f"{dims} of {value!r}",
                              help="x[:, 0] picks a position")
    return without(value, dims)


@user_call("expand_dims")
def expand_dims(x: object, axis: object) -> TensorValue:
    """Return the view with dimensions of extent 1 more, at the places of the result that `axis` names."""
    value = value_of("expand_dims", x)
    items = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    rank = value.rank + len(items)
    places = [at % rank for at in map(whole_number, items) if at is not None and -rank <= at < rank]
    if len(set(places)) < len(items):
        raise TensorAxisError("`expand_dims`: no place for a dimension", here(), expected=f"{-rank} .. {rank - 1}, each once",
                              found=repr(axis))
    for at in sorted(places):
        value = value.then(tf.Insert(at))
    return value


@user_call("broadcast_to")
def broadcast_to(x: object, *shape: object) -> TensorValue:
    """Return the elements repeated along written extents of 1: a value of its own."""
    trace, value = current_trace("broadcast_to"), value_of("broadcast_to", x)
    items = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    target = trace.extents("`broadcast_to`", items)
    joined = trace.joined_shapes("`broadcast_to`", [(repr(value), value.extents), (_shown(target), target)])
    if not (len(joined) == len(target) and all(trace.facts.are_same(a, b) for a, b in zip(joined, target, strict=True))):
        raise ExtentError("`broadcast_to`: the tensor is larger", here(), expected=_shown(target), found=repr(value))
    return _snapshot(trace.apply("expand", (value,), target, value.dtype), "a broadcast", value)


def _snapshot(made: TensorValue, what: str, source: TensorValue) -> TensorValue:
    """Return a copy as one that is used before its source is written: NumPy has a view there."""
    if source.storage.writable:
        made.taken = (TakenCopy(what, source.storage, current_trace(what).blocks.innermost.id),)
    return made


@user_call("flip")
def flip(x: object, axis: object = None, *, dims: object = None) -> TensorValue:
    """Return the view with dimensions reversed; all without an axis."""
    value = value_of("flip", x)
    for at in axes_of("flip", value, axis, dims):
        value = value.then(tf.Flip(at))
    return value


@user_call("split")
def split(x: object, sections: object, axis: object = 0, *, dim: object = None) -> list[TensorValue]:
    """Return views along an axis: `sections` equal parts, or the parts between the positions of a list."""
    if dim is not None:
        raise TensorAxisError("`split`: torch's split along `dim` takes the size of a part, NumPy's their number", here(),
                              expected=f"axis={dim!r}, and the number of parts", found=f"dim={dim!r}",
                              help=f"torch.split(x, size, dim={dim!r}) means torch's")
    return _split("split", value_of("split", x), sections, axis)


def _split(name: str, value: TensorValue, sections: object, axis: object) -> list[TensorValue]:
    trace = current_trace(name)
    at = one_axis(name, value, axis)
    extent = value.extents[at]
    if isinstance(sections, tuple | list):
        edges = [Const(0), *(trace.whole(f"`{name}`: a place", place) for place in sections), extent]
        return [cut(trace, value, at, slice(_given(a), _given(b))) for a, b in pairwise(edges)]
    count = whole_number(sections)
    part = None if count is None or count < 1 else divided(extent, Const(count))
    if count is None or part is None:
        raise TensorReshapeError(f"`{name}`: {print_scalar(extent)} positions are not split so", here(), found=repr(sections),
                                 expected="a number of parts that divides them exactly, or a list of places",
                                 help=None if isinstance(extent, Const) else "places may be of symbols: "
                                 f"np.split(x, [x.shape[{at}] // 2]{f', axis={at}' if at else ''})")
    return [value.then(Cut(at, simplified(s.mul(part, Const(k))), simplified(s.mul(part, Const(k + 1))))) if count > 1 else value
            for k in range(count)]


def _given(node: Scalar) -> object:
    return int(node.value) if isinstance(node, Const) else Symbolic(node)


# -- joins: state that is written part by part -------------------------------------------------------------------------

@user_call("concatenate")
def concatenate(arrays: object, axis: object = 0, *, dim: object = None) -> TensorValue:
    """Return tensors joined along an axis."""
    trace = current_trace("concatenate")
    values = _listed(trace, "concatenate", arrays)
    if axis is None:
        values, axis = [refolded(v, (product(v.extents),)) for v in values], 0
    at = one_axis("concatenate", values[0], axis if dim is None else dim)
    first = values[0]
    shape = list(first.extents)
    for other in values[1:]:
        if other.rank != first.rank:
            raise ExtentError("`concatenate`: tensors of different ranks", here(), found=f"{first!r} and {other!r}")
        for k in range(first.rank):
            if k != at and not trace.facts.are_same(shape[k], other.extents[k]):
                trace.refuse_extents("`concatenate`", shape[k], other.extents[k], f"{first!r} and {other!r}")
    edges: list[Scalar] = [Const(0)]
    for each in values:
        edges.append(simplified(s.add(edges[-1], each.extents[at])))
    shape[at] = edges[-1]
    made = trace.state(tuple(shape), first.dtype, None, what="concat")
    for each, (low, high) in zip(values, pairwise(edges), strict=True):
        put(trace, made.then(Cut(at, low, high)), each)
    return made


def _listed(trace: TensorTrace, name: str, arrays: object) -> list[TensorValue]:
    if not isinstance(arrays, tuple | list) or not arrays:
        raise TensorOperandError(f"`{name}` takes a list of tensors", here(), expected=f"np.{name}([a, b], axis=0)",
                                 found=f"{arrays!r:.60}")
    values = [trace.value(f"`{name}`", each) for each in arrays]
    odd = next((each for each in values if each.dtype is not values[0].dtype), None)
    if odd is not None:
        raise UnsupportedDTypeError(f"`{name}`: tensors of different dtypes", here(), expected=str(values[0].dtype), found=repr(odd),
                                    help=f"convert it: .astype({values[0].dtype!r})")
    return values


@user_call("stack")
def stack(arrays: object, axis: object = 0, *, dim: object = None) -> TensorValue:
    """Return tensors of one shape along a new axis."""
    values = _listed(current_trace("stack"), "stack", arrays)
    widened = [expand_dims(each, axis if dim is None else dim) for each in values]
    at = whole_number(axis if dim is None else dim)
    return concatenate(widened, at)


@user_call("hstack")
def hstack(arrays: object) -> TensorValue:
    """Return tensors joined along their second axis, of rank 1 along their only one."""
    values = _listed(current_trace("hstack"), "hstack", arrays)
    return concatenate(values, 0 if values[0].rank == 1 else 1)


@user_call("vstack")
def vstack(arrays: object) -> TensorValue:
    """Return tensors joined along their first axis; those of rank 1 are rows."""
    values = _listed(current_trace("vstack"), "vstack", arrays)
    return concatenate([each.then(tf.Insert(0)) if each.rank == 1 else each for each in values], 0)


@user_call("repeat")
def repeat(x: object, repeats: object, axis: object = None) -> TensorValue:
    """Return each position along an axis `repeats` times, one after the other."""
    trace, value, count = current_trace("repeat"), value_of("repeat", x), whole_number(repeats)
    if count is None or count < 1:
        raise TensorOptionError("`repeat` repeats a constant number of times", here(), expected="a whole number >= 1", found=repr(repeats))
    if axis is None:
        value, axis = refolded(value, (product(value.extents),)), 0
    at = one_axis("repeat", value, axis)
    wide = value.then(tf.Insert(at + 1))
    shape = list(wide.extents)
    shape[at + 1] = Const(count)
    made = trace.apply("expand", (wide,), tuple(shape), value.dtype)
    joined = (*value.extents[:at], simplified(s.mul(value.extents[at], Const(count))), *value.extents[at + 1:])
    return made.then(tf.Refold(joined))


@user_call("tile")
def tile(x: object, reps: object) -> TensorValue:
    """Return the tensor repeated along each axis."""
    trace, value = current_trace("tile"), value_of("tile", x)
    counts = [whole_number(n) for n in (reps if isinstance(reps, tuple | list) else (reps,))]
    if any(n is None or n < 1 for n in counts):
        raise TensorOptionError("`tile` repeats a constant number of times", here(), expected="whole numbers >= 1", found=repr(reps))
    while value.rank < len(counts):
        value = value.then(tf.Insert(0))
    counts = [*(1 for _ in range(value.rank - len(counts))), *counts]
    for at, count in enumerate(counts):
        if count != 1:
            wide = value.then(tf.Insert(at))
            shape = (*wide.extents[:at], Const(count or 1), *wide.extents[at + 1:])
            made = trace.apply("expand", (wide,), shape, value.dtype)
            value = made.then(tf.Refold((*value.extents[:at], simplified(s.mul(value.extents[at], Const(count or 1))),
                                         *value.extents[at + 1:])))
    return value


@user_call("pad")
def pad(x: object, pad_width: object, mode: object = "constant", *, constant_values: object = 0) -> TensorValue:
    """Return the tensor in a frame of one number."""
    trace, value = current_trace("pad"), value_of("pad", x)
    if mode != "constant":
        raise TensorFunctionError("`pad` fills a frame with a number", here(), expected='mode="constant"', found=f"mode={mode!r}")
    pairs = _widths(pad_width, value.rank)
    shape = tuple(simplified(s.add(n, Const(a + b))) for n, (a, b) in zip(value.extents, pairs, strict=True))
    number = trace.weak("`pad`", constant_values, value.dtype)
    made = trace.state(shape, value.dtype, number.value if isinstance(number, Const) else None, what="pad")
    if not isinstance(number, Const):
        put(trace, made, Symbolic(number))
    inner = made.then(*(Cut(k, Const(a), s.add(value.extents[k], Const(a))) for k, (a, _) in enumerate(pairs)))
    put(trace, inner, value)
    return made


def _widths(given: object, rank: int) -> list[tuple[int, int]]:
    pairs = np.broadcast_to(np.asarray(given), (rank, 2)).tolist() if _is_widths(given, rank) else None
    if pairs is None:
        raise TensorOptionError("`pad`: not the widths of a frame", here(), expected="a whole number, or (before, after) for each axis",
                               found=repr(given))
    return [(int(a), int(b)) for a, b in pairs]


def _is_widths(given: object, rank: int) -> bool:
    try:
        array = np.asarray(given)
        np.broadcast_to(array, (rank, 2))
    except ValueError:
        return False
    return array.dtype.kind in "iu" and bool((array >= 0).all())


@user_call("tril")
def tril(x: object, k: object = 0) -> TensorValue:
    """Return x with zeros above its k-th diagonal, of the last two dimensions."""
    return _triangle("tril", x, k, lower=True)


@user_call("triu")
def triu(x: object, k: object = 0) -> TensorValue:
    """Return x with zeros below its k-th diagonal, of the last two dimensions."""
    return _triangle("triu", x, k, lower=False)


def _triangle(name: str, x: object, k: object, lower: bool) -> TensorValue:
    trace, value = current_trace(name), value_of(name, x)
    trace.dim_from_end(f"`{name}`", value, 2)
    rows = trace.counted(value.extents[-2], DType.I32).then(tf.Insert(1))
    limit = add(rows, Symbolic(trace.whole(f"`{name}`: the diagonal", k)))
    columns = trace.counted(value.extents[-1], DType.I32)
    return where((le if lower else ge)(columns, limit), value, False if value.dtype.is_bool else 0)  # type: ignore[return-value]


@user_call("roll")
def roll(x: object, shift: object, axis: object = None) -> TensorValue:
    """Return the tensor with its positions along an axis moved by a number; those that leave at the end come in at the start."""
    value, by = value_of("roll", x), whole_number(shift)
    if by is None:
        raise TensorOptionError("`roll` moves by a constant", here(), expected="a whole number", found=repr(shift))
    if axis is None:
        return reshape(roll(refolded(value, (product(value.extents),)), by, 0), *value.shape)
    at = one_axis("roll", value, axis)
    extent = value.extents[at]
    if isinstance(extent, Const) and extent.value:
        by %= int(extent.value)
    if by == 0:
        return value
    trace = current_trace("roll")
    return concatenate([cut(trace, value, at, slice(-by, None)), cut(trace, value, at, slice(None, -by))], at)


@user_call("diff")
def diff(x: object, n: object = 1, axis: object = -1) -> TensorValue:
    """Return the differences of neighbours along an axis."""
    value, trace = value_of("diff", x), current_trace("diff")
    if n != 1:
        raise TensorFunctionError("`diff` takes neighbours", here(), expected="n=1", found=f"n={n!r}")
    at = one_axis("diff", value, axis)
    return cut(trace, value, at, slice(1, None)) - cut(trace, value, at, slice(None, -1))  # type: ignore[return-value]


# -- elements ----------------------------------------------------------------------------------------------------------

@user_call("astype")
def astype(x: object, dtype: object, *, copy: object = True) -> TensorValue:
    """Return the tensor in another dtype; itself if it has that dtype."""
    value = value_of("astype", x)
    wanted = typing.as_dtype("astype", dtype, ALL)
    return value if value.dtype is wanted else cast(value, wanted)  # type: ignore[return-value]


@user_call("where")
def where_(condition: object, x: object = None, y: object = None) -> TensorValue:
    """Return x where the mask holds, else y."""
    if x is None or y is None:
        raise TensorFunctionError("`where` of a mask alone gives a number of places that only data knows", here(),
                                  expected="np.where(mask, a, b)", found="a mask alone",
                                  help="np.where(mask, x, 0) keeps the shape; tt.rows_of(table, n) groups places")
    return where(condition, x, y)  # type: ignore[return-value]


@user_call("clip")
def clip(x: object, a_min: object = None, a_max: object = None, *, min: object = None, max: object = None) -> TensorValue:
    """Return x, at least the first bound and at most the second; None for no bound."""
    return formulas.clamp(value_of("clip", x), a_min if min is None else min, a_max if max is None else max)  # type: ignore[return-value]


@user_call("round")
def round_(x: object, decimals: object = 0) -> TensorValue:
    """Return x rounded to whole numbers, halves to even."""
    if decimals != 0 or isinstance(decimals, bool):
        raise TensorFunctionError("`round` rounds to whole numbers", here(), expected="no decimals", found=repr(decimals))
    return round(value_of("round", x))  # type: ignore[return-value]


@user_call("dot")
def dot(a: object, b: object) -> TensorValue:
    """Return the product of two tensors of at most two dimensions."""
    left, right = value_of("dot", a), value_of("dot", b)
    if left.rank > 2 or right.rank > 2:
        raise TensorFunctionError("`dot` of more than two dimensions pairs every row with every matrix", here(),
                                  expected="a @ b, or einsum",
                                  found=f"{left!r} and {right!r}")
    return multiplied(left, right)  # type: ignore[return-value]


@user_call("outer")
def outer(a: object, b: object) -> TensorValue:
    """Return the products of all pairs of elements of two tensors of rank 1."""
    return ravel(a).then(tf.Insert(1)) * ravel(b)  # type: ignore[return-value]


@user_call("copy")
def copy(x: object) -> TensorValue:
    """Return a copy, as state."""
    value, trace = value_of("copy", x), current_trace("copy")
    made = trace.state(value.extents, value.dtype, None, what="copy")
    put(trace, made, value)
    return made


@user_call("norm")
def norm(x: object, axis: object = None, keepdims: object = False) -> TensorValue:
    """Return the root of the sum of squares along axes."""
    value = value_of("norm", x)
    return sqrt(sum_(value * value, axis, keepdims=keepdims))  # type: ignore[return-value]


# -- order and places --------------------------------------------------------------------------------------------------

def whole_axis(name: str, value: TensorValue, at: int) -> None:
    """Check that an axis that must be whole has a bound.

    Raises: J205.
    """
    extent = value.extents[at]
    if current_trace(name).facts.bound_of(extent) is None:
        text = print_scalar(extent)
        raise UnboundedAxisError(f"`{name}` needs the whole axis at once, and {text} has no bound", here(), found=repr(value),
                                 expected="a number, or a symbol with a promised bound",
                                 help=_promise(value, at))


def _promise(value: TensorValue, at: int) -> str:
    """Return the `tt.assume` calls that bound an extent, one for each symbol of the extent: a symbol is `x.shape[0]` of a parameter x."""
    extent, trace = value.extents[at], current_trace("shape")
    wanted = [extent, *(leaf for leaf in leaves(extent) if isinstance(leaf, SymbolRef) and trace.facts.bound_of(leaf) is None)]
    given = [(storage.array.name, storage.array.shape) for storage in trace.made.values()
             if storage.kind in (ArrayRole.READ, ArrayRole.WRITTEN)]
    found = dict.fromkeys(next((f"{name}.shape[{shape.index(one)}]" for name, shape in given if one in shape), "") for one in wanted)
    promises = [f"tt.assume({text} <= 4096)" for text in found if text]
    return f"{', '.join(promises)}: each call checks it" if promises else "a slice of it has a bound: rows = x[lo:hi][:4096]"


@user_call("sort")
def sort(x: object, axis: object = -1, *, dim: object = None, descending: object = False) -> TensorValue:
    """Return the elements along an axis in order; NaN is the largest."""
    value = value_of("sort", x)
    if axis is None:
        value, axis = refolded(value, (product(value.extents),)), 0
    at = one_axis("sort", value, axis if dim is None else None, dim)
    whole_axis("sort", value, at)
    last = moved_last(value, at)
    return moved_back(gathered(last, order_of(last, descending)), at)  # type: ignore[arg-type]


@user_call("argsort")
def argsort(x: object, axis: object = -1, *, kind: object = None, stable: object = True, descending: object = False, dim: object = None,
            ) -> TensorValue:
    """Return the places of the elements along an axis in order, i32; of equal elements the lower place first."""
    value = value_of("argsort", x)
    if axis is None:
        value, axis = refolded(value, (product(value.extents),)), 0
    at = one_axis("argsort", value, axis if dim is None else None, dim)
    whole_axis("argsort", value, at)
    return moved_back(order_of(moved_last(value, at), descending), at)  # type: ignore[arg-type]


def gathered(source: TensorValue, places: TensorValue) -> TensorValue:
    """Return, along the last dimension, the elements of the source at places; other dimensions are the same, or a written 1."""
    trace = current_trace("take_along_axis")
    leading = trace.joined_shapes("`take_along_axis`", [(repr(source), source.extents[:-1]), (repr(places), places.extents[:-1])])
    return trace.apply(_gather.name, (source, places), (*leading, places.extents[-1]), source.dtype, (("axis", 1),))


@user_call("take_along_axis")
def take_along_axis(x: object, indices: object, axis: object = -1) -> TensorValue:
    """Return x[..., indices[...], ...] along an axis."""
    value, places = value_of("take_along_axis", x), value_of("take_along_axis", indices)
    if axis is None:
        value, axis = refolded(value, (product(value.extents),)), 0
    at = one_axis("take_along_axis", value, axis)
    if places.rank != value.rank or not places.dtype.is_integer:
        raise TensorOperandError("`take_along_axis` takes a table of places of the same rank", here(),
                                 expected=f"{value.rank} dimensions of "
                               "whole numbers", found=repr(places))
    return moved_back(gathered(moved_last(value, at), moved_last(places, at)), at)


@user_call("take")
def take(x: object, indices: object, axis: object = None) -> TensorValue:
    """Return the positions along an axis that a table names."""
    value = value_of("take", x)
    if axis is None:
        value, axis = refolded(value, (product(value.extents),)), 0
    at = one_axis("take", value, axis)
    return value[(*(slice(None),) * at, indices)]  # type: ignore[no-any-return]


@user_call("topk")
def topk(x: object, k: object, *, largest: object = True, names: tuple[str | None, str | None] = (None, None)) -> tuple[TensorValue,
                                                                                                                        TensorValue]:
    """Return the k largest elements along the last axis, falling, and their places, i32; NaN is the largest, then the lower place."""
    value, trace, count = value_of("topk", x), current_trace("topk"), whole_number(k)
    at = trace.dim_from_end("`topk`", value, 1)
    extent = value.extents[at]
    if count is None or count < 1 or not isinstance(largest, bool):
        raise TensorOptionError("`topk`: k is a whole number known when the body is traced", here(), expected="a number >= 1",
                                found=repr(k))
    if value.dtype not in COMPUTED:
        raise UnsupportedDTypeError("`topk` orders numbers", here(), expected="numbers", found=repr(value))
    if isinstance(extent, Const) and count > extent.value:
        raise ExtentError(f"`topk`: k is {count}", here(), expected=f"1 .. {extent.value}, the extent of the last axis", found=str(count))
    whole_axis("topk", value, at)
    missing = check_elements("topk", value, (at,), count)
    places, = trace.apply_all("topk", (value,), (((*value.extents[:-1], Const(count)), DType.I32, ()),),
                              (("k", count), ("descending", largest)), names[1:])
    places = with_elements(places, missing)
    made, = trace.apply_all(_gather.name, (value, places), ((places.extents, value.dtype, ()),), (("axis", 1),), names[:1])
    return made, places


# -- state like another tensor -----------------------------------------------------------------------------------------

def state_like(name: str, x: object, fill: object, dtype: object, shape: object = None) -> TensorValue:
    """Return state in the shape of a tensor, of one number, or undefined (None)."""
    trace, value = current_trace(name), value_of(name, x)
    kind = value.dtype if dtype is None else typing.as_dtype(name, dtype, ALL)
    extents = value.extents if shape is None else trace.extents(f"`{name}`", shape)
    return made_state(trace, name, extents, fill, kind)


def made_state(trace: TensorTrace, name: str, extents: tf.Extents, fill: object, dtype: DType) -> TensorValue:
    """Return state of a number, a scalar of the function, or undefined (None)."""
    if fill is None:
        return trace.state(extents, dtype, None, what=name)
    node = trace.weak(f"`{name}`", bool(fill) if dtype.is_bool and isinstance(fill, int) else fill, dtype)
    if isinstance(node, Const):
        return trace.state(extents, dtype, node.value, what=name)
    made = trace.state(extents, dtype, None, what=name)
    put(trace, made, Symbolic(node))
    return made


@user_call("zeros_like")
def zeros_like(x: object, dtype: object = None, *, shape: object = None) -> TensorValue:
    """Return state of zeros in the shape of a tensor."""
    return state_like("zeros_like", x, 0, dtype, shape)


@user_call("ones_like")
def ones_like(x: object, dtype: object = None, *, shape: object = None) -> TensorValue:
    """Return state of ones in the shape of a tensor."""
    return state_like("ones_like", x, 1, dtype, shape)


@user_call("full_like")
def full_like(x: object, fill_value: object, dtype: object = None, *, shape: object = None) -> TensorValue:
    """Return state of one number in the shape of a tensor."""
    return state_like("full_like", x, fill_value, dtype, shape)


@user_call("empty_like")
def empty_like(x: object, dtype: object = None, *, shape: object = None) -> TensorValue:
    """Return undefined state in the shape of a tensor."""
    return state_like("empty_like", x, None, dtype, shape)


@user_call("fill")
def fill(x: object, value: object) -> None:
    """Write one number to every element."""
    assign(current_trace("fill"), value_of("fill", x), Ellipsis, value)


def _shown(shape: Sequence[Scalar]) -> str:
    return f"[{', '.join(map(print_scalar, shape))}]"
