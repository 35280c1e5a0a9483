"""Index views: one position or a slice of a dimension, at most so many positions, another shape, and the scalar of one element.

>>> cut(pick(View(x), 0, 2), 0, slice(0, 8))      # X[2][:8]
View(X[2, :8])
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pto_wsp.errors import ArgumentKindError, ViewBoundsError, ViewIndexError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Counted, as_scalar, has_scalar
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View, declared, place_of, print_view
from pto_wsp.source import here

MAX_RANK = 8
_REFUSED = s.Const(0)     # the limit of clip() that stands for a value that is none


def pick(view: View, dim: int, entry: object) -> View:
    """Return the view at one position of a dimension, which the result no longer has.

    Raises: T301 for a constant out of range, T302 for a value that is not an index.
    """
    if isinstance(entry, Counted):
        raise ViewIndexError("an axis is no index", here(), found=repr(entry),
                             expected="a position of the axis", help="loop over the axis, `for i in P(axis)`, and index with i")
    extent = place_of(view).dims[dim].extent
    index = _from_end(_index(entry), extent)
    _check_constant(view, dim, index, extent, entry, below=True)
    return View(view.tensor, (*view.steps, Pick(dim, index)))


def cut(view: View, dim: int, entry: slice) -> View:
    """Return the view of a slice of a dimension.

    Raises: T301 for a constant out of range or a slice that ends before it starts, T302 for a value that is not an index or step.
    """
    extent = place_of(view).dims[dim].extent
    step = 1 if entry.step is None else entry.step
    if not isinstance(step, int) or isinstance(step, bool) or step < 1:
        raise ViewIndexError("a slice's step is a whole number >= 1", here(), found=repr(step))
    start = s.Const(0) if entry.start is None else _from_end(_index(entry.start), extent)
    stop = extent if entry.stop is None else _from_end(_index(entry.stop), extent)
    if start == s.Const(0) and stop == extent and step == 1:
        return view
    _check_constant(view, dim, start, extent, entry.start, below=False)
    _check_constant(view, dim, stop, extent, entry.stop, below=False)
    span = declared(s.sub(stop, start))
    if isinstance(span, s.Const) and int(span.value) < 0:
        raise ViewBoundsError(f"the slice of `{print_view(view)}` ends before it starts", here(),
                              found=f"{print_scalar(start)}:{print_scalar(stop)}")
    return View(view.tensor, (*view.steps, Cut(dim, start, stop, step)))


def element(view: View) -> s.Scalar:
    """Return the scalar that reads the only element of a rank-0 view.

    Raises: T302 for an element of a slice or of a reshaped view.
    """
    tensor = view.tensor
    axes: list[tuple[int, s.Scalar, int]] = [(k, s.Const(0), 1) for k in range(tensor.rank)]
    index: list[s.Scalar] = [s.Const(0)] * tensor.rank
    cut: set[int] = set()
    for step in view.steps:
        match step:
            case Pick(dim, position):
                axis, start, by = axes.pop(dim)
                if axis in cut and not isinstance(position, s.Const):
                    raise ViewIndexError("an element is read from the tensor itself, not from a slice of it", here(),
                                         found=f"`{print_view(view)}`", help="index the tensor, adding where the slice starts")
                index[axis] = s.add(start, s.mul(position, s.Const(by)))
            case Cut(dim, start_at, _, by_now):
                axis, start, by = axes[dim]
                cut.add(axis)
                axes[dim] = (axis, s.add(start, s.mul(start_at, s.Const(by))), by * by_now)
            case Permute(order):
                axes = [axes[k] for k in order]
            case Clip():
                cut.update(axis for axis, _, _ in axes)
            case Reshape():
                raise ViewIndexError("an element is read from the tensor itself, not from a reshaped view", here(),
                                     help="index the tensor before reshape()")
    return s.Element(tensor, tuple(index))


def clip(view: View, limits: Sequence[object]) -> View:
    """Return at most `limits` positions of each dimension; a limit is a number, None, or a scalar of the run.

            X[i * 64:].clip(minimum(64, n - i * 64), 8)    →    X[i * 64:][:max(min(n - i * 64, rest), 0)].clip(64, 8)

    Raises: T302 for anything else.
    """
    rank = len(place_of(view).dims)
    nodes = tuple(None if entry is None else _whole_scalar(entry) or _REFUSED for entry in limits)
    bounds = tuple(None if node is None else at_most(node) for node in nodes)
    if len(limits) != rank or not all(bound is None or bound >= 1 for bound in bounds):
        raise ViewIndexError("clip takes one limit a dimension", here(),
                             expected=f"{rank} limit{'s' * (rank != 1)}, each a whole number >= 1, a whole scalar of the run, or None",
                             found=f"{', '.join(map(repr, limits)):.80}" or "none")
    for dim, node in enumerate(nodes):
        if node is not None and not isinstance(node, s.Const):
            stop = s.maximum(s.minimum(_beside_numbers(node), place_of(view).dims[dim].extent), s.Const(0))
            view = View(view.tensor, (*view.steps, Cut(dim, s.Const(0), stop)))
    return view if all(bound is None for bound in bounds) else View(view.tensor, (*view.steps, Clip(bounds)))


def reshape(view: View, shape: Sequence[object]) -> View:
    """Return a contiguous view in another shape; one extent may be -1, for the rest.

    Raises: T302 for a view that is not contiguous with known extents, and for a shape of another number of elements.
    """
    dims = place_of(view).dims
    extents = [declared(dim.extent) for dim in dims]
    strides = [declared(dim.stride) for dim in dims]
    sizes = [int(e.value) for e in extents if isinstance(e, s.Const)]
    steps = [int(e.value) for e in strides if isinstance(e, s.Const)]
    count = math.prod(sizes)
    if len(sizes) != len(dims) or len(steps) != len(dims) or tuple(steps) != _like_contiguous(sizes, steps):
        raise ViewIndexError(f"`{print_view(view)}` is not contiguous with known extents, so it has no other shape", here(),
                             help="reshape the tensor first and slice then, or copy the array")
    whole = [n for entry in shape if (n := whole_number(entry)) is not None]
    if len(whole) != len(shape):
        raise ViewIndexError("reshape takes whole numbers", here(), found=repr(tuple(shape)))
    if whole.count(-1) == 1:
        rest = math.prod(n for n in whole if n != -1)
        whole[whole.index(-1)] = count // rest if rest and count % rest == 0 else -1
    if any(n < 0 for n in whole) or math.prod(whole) != count or len(whole) > MAX_RANK:
        raise ViewIndexError(f"{count} elements do not fit the shape", here(), expected=f"a product of {count}",
                             found=str(tuple(shape)))
    return View(view.tensor, (*view.steps, Reshape(tuple(whole))))


def at_most(node: s.Scalar) -> int | None:
    """Return a number that a whole scalar never exceeds, from the constants of its minima; None if there is none."""
    match node:
        case s.Const(value):
            return int(value)
        case s.Binary(s.Op.MIN, lhs, rhs):
            return min((bound for side in (lhs, rhs) if (bound := at_most(side)) is not None), default=None)
        case s.Binary(s.Op.MAX, lhs, rhs):
            one, other = at_most(lhs), at_most(rhs)
            return None if one is None or other is None else max(one, other)
        case _:
            return None


def _beside_numbers(node: s.Scalar) -> s.Scalar:
    """Return a minimum without its constants: min(64, n) → n."""
    match node:
        case s.Binary(s.Op.MIN, s.Const(), other) | s.Binary(s.Op.MIN, other, s.Const()):
            return _beside_numbers(other)
        case _:
            return node


def whole_number(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for any other value, including bools."""
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def _from_end(index: s.Scalar, extent: s.Scalar) -> s.Scalar:
    return s.add(extent, index) if isinstance(index, s.Const) and int(index.value) < 0 else index


def _whole_scalar(entry: object) -> s.Scalar | None:
    """Return a whole number or scalar; None for any other value."""
    try:
        node = as_scalar(entry)
    except ArgumentKindError:
        if has_scalar(entry):
            raise   # a view raises its own error
        return None
    return node if s.scalar_dtype(node).is_integer else None


def _index(entry: object) -> s.Scalar:
    node = _whole_scalar(entry)
    if node is None:
        raise ViewIndexError("this is not an index", here(), found=f"{type(entry).__name__}: {entry!r:.60}",
                             expected="an int, a loop variable, an integer scalar expression, a slice or ...")
    return node


def _check_constant(view: View, dim: int, index: s.Scalar, extent: s.Scalar, written: object, *, below: bool) -> None:
    known, limit = declared(index), declared(extent)
    if not isinstance(known, s.Const) or not isinstance(limit, s.Const):
        return
    top = int(limit.value) - below
    if not 0 <= int(known.value) <= top:
        raise ViewBoundsError(f"index {print_scalar(as_scalar(written))} is outside dimension {dim} of `{print_view(view)}`", here(),
                              expected=f"0 .. {top}" if top >= 0 else "nothing: the dimension is empty",
                              found=str(known.value), help="slices never clip in silence; .clip(...) keeps what is there"
                              if not below else None)


def _like_contiguous(sizes: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous view, with those of dimensions of extent 1 unchanged."""
    if 0 in sizes:
        return tuple(steps)   # an empty view accepts any strides
    dense = Layout.contiguous(tuple(sizes)).strides
    return tuple(step if size == 1 else want for size, step, want in zip(sizes, steps, dense, strict=True))
