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
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Counted, as_scalar, has_scalar
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View, declared, place_of, print_view, unit_stride
from pto_wsp.source import here

MAX_RANK = 8
LARGEST_STEP = 2**31 - 1      # of a slice: what is added to extents and multiplied with strides stays below 2**63
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
    if not isinstance(step, int) or isinstance(step, bool) or not 1 <= step <= LARGEST_STEP:
        raise ViewIndexError(f"a slice's step is a whole number, 1 .. {LARGEST_STEP}", here(), found=repr(step))
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
    """Return a view in another shape; one extent may be -1, for the rest.

    A dimension whose extent the shape repeats stays as it is, of whatever extent and stride; those between lie contiguously:

            X[:n].reshape(n, 4, 8)    # of a tensor of shape (64, 32): rows as they are, each 4 × 8

    Raises: T302 for dimensions that are not contiguous with known extents, and for a shape of another number of elements.
    """
    dims = place_of(view).dims
    old = [simplified(declared(dim.extent)) for dim in dims]
    new = [None if whole_number(entry) == -1 else _whole_scalar(entry) for entry in shape]
    if any(node is None for node, entry in zip(new, shape, strict=True) if whole_number(entry) != -1):
        raise ViewIndexError("reshape takes whole numbers", here(), found=repr(tuple(shape)))
    new = [None if node is None else simplified(declared(node)) for node in new]
    filled = _filled(view, old, new, shape)
    groups = _groups(old, filled)
    changed = [group for group in groups if group[1] - group[0] != 1 or group[3] - group[2] != 1 or old[group[0]] != filled[group[2]]]
    for first, last, at, end in reversed(changed):      # from behind, so that the numbers in front hold
        part = tuple(int(n.value) for n in filled[at:end] if isinstance(n, s.Const))
        view = reshape_dims(view, part, () if last - first == len(old) else (first, last))
    return reshape_dims(view, tuple(int(n.value) for n in filled if isinstance(n, s.Const))) if not (groups or changed) else view


def _filled(view: View, old: Sequence[s.Scalar], new: Sequence[s.Scalar | None], shape: Sequence[object]) -> list[s.Scalar]:
    """Return the extents of a new shape with a number or a scalar in place of -1.

    Raises: T302 for a shape of another number of elements.
    """
    count, others = _count(old), _count([n for n in new if n is not None])
    left = [size for size in old if not isinstance(size, s.Const)]
    unknown = False
    for size in (n for n in new if n is not None and not isinstance(n, s.Const)):
        unknown = unknown or size not in left
        if not unknown:
            left.remove(size)
    rest: s.Scalar | None = None
    if new.count(None) == 1 and not unknown:
        if len(left) == 1 and count == others:
            rest, left = left[0], []
        elif not left and others and count % others == 0:
            rest = s.Const(count // others)
    filled = [rest if n is None and rest is not None else n for n in new]
    known = [n for n in filled if n is not None]
    if unknown or left or len(known) < len(filled) or len(known) > MAX_RANK or _count(known) != count or any(
            isinstance(n, s.Const) and int(n.value) < 0 for n in known):
        whole = " · ".join((str(count), *(print_scalar(size) for size in old if not isinstance(size, s.Const))))
        raise _misfit(whole, shape)
    return known


def _misfit(count: str, shape: Sequence[object]) -> ViewIndexError:
    return ViewIndexError(f"{count} elements do not fit the shape", here(), expected=f"a product of {count}", found=repr(tuple(shape)))


def _count(extents: Sequence[s.Scalar]) -> int:
    """Return the product of the extents that are numbers."""
    return math.prod(int(extent.value) for extent in extents if isinstance(extent, s.Const))


def _groups(old: Sequence[s.Scalar], new: Sequence[s.Scalar]) -> list[tuple[int, int, int, int]]:
    """Return the smallest groups of dimensions, old and new, that have as many elements: first and last of each; () where one is empty."""
    if s.Const(0) in (*old, *new) or not old or not new:
        return []
    groups: list[tuple[int, int, int, int]] = []
    first = at = 0
    while first < len(old) and at < len(new):
        last, end = first + 1, at + 1
        if old[first] == s.Const(1) and not isinstance(new[at], s.Const):      # extents of 1 in front of one that a run tells
            end = at
        elif new[at] == s.Const(1) and not isinstance(old[first], s.Const):
            last = first
        elif old[first] != new[at]:
            while (sides := (_number(old[first:last]), _number(new[at:end])))[0] != sides[1] or None in sides:
                if None in sides or (last == len(old) and end == len(new)):
                    return [(0, len(old), 0, len(new))]
                if end == len(new) or (last < len(old) and (sides[0] or 0) < (sides[1] or 0)):
                    last += 1
                else:
                    end += 1
        groups.append((first, last, at, end))
        first, at = last, end
    if first == len(old) and at < len(new) and not isinstance(old[-1], s.Const):       # extents of 1 behind one that a run tells
        groups.append((first, first, at, len(new)))
    elif first < len(old) or at < len(new):       # extents of 1 at the end
        before = groups.pop()
        groups.append((before[0], len(old), before[2], len(new)))
    return groups


def _number(extents: Sequence[s.Scalar]) -> int | None:
    return _count(extents) if all(isinstance(extent, s.Const) for extent in extents) else None


def reshape_dims(view: View, shape: tuple[int, ...], within: tuple[int, ...] = ()) -> View:
    """Return a view with contiguous dimensions in another shape. `within`: the first of them, and one behind the last; () all.

    Raises: T302 for dimensions that are not contiguous with known extents, and for a shape of another number of elements.
    """
    made = Reshape(shape, within)
    dims = place_of(view).dims
    first, last = made.span(len(dims))
    extents, strides = ([declared(node) for node in nodes] for nodes in zip(*((dim.extent, dim.stride) for dim in dims[first:last]),
                                                                          strict=True)) if dims[first:last] else ([], [])
    sizes = [int(e.value) for e in extents if isinstance(e, s.Const)]
    steps = [int(e.value) for e in strides if isinstance(e, s.Const)]
    lying = declared(unit_stride(dims[first:last])) if within else s.Const(1)
    unit = int(lying.value) if isinstance(lying, s.Const) else 0
    if len(sizes) != last - first or len(steps) != last - first or tuple(steps) != _like_contiguous(sizes, steps, unit):
        raise ViewIndexError(f"`{print_view(view)}` is not contiguous with known extents, so it has no other shape", here(),
                             help="reshape the tensor first and slice then, or copy the array")
    if any(n < 0 for n in shape) or math.prod(shape) != math.prod(sizes) or len(dims) - (last - first) + len(shape) > MAX_RANK:
        raise _misfit(str(math.prod(sizes)), shape)
    return View(view.tensor, (*view.steps, made))


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


def _like_contiguous(sizes: Sequence[int], steps: Sequence[int], unit: int) -> tuple[int, ...]:
    """Return the strides of a contiguous view whose neighbours lie `unit` apart, with those of dimensions of extent 1 unchanged."""
    if 0 in sizes:
        return tuple(steps)   # an empty view accepts any strides
    dense = Layout.contiguous(tuple(sizes)).strides
    return tuple(step if size == 1 else want * unit for size, step, want in zip(sizes, steps, dense, strict=True))
