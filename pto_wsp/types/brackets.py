"""What stands in the brackets of a tensor: an index picks a position, a slice cuts, and what is left may be one element.

>>> print_view(cut(View(X), 0, slice(2, 6)))
'X[2:6]'
"""

from __future__ import annotations

from pto_wsp.errors import ArgumentKindError, ViewBoundsError, ViewIndexError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import as_scalar, has_scalar
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, View, declared, place_of, print_view


def pick(view: View, dim: int, entry: object) -> View:
    """Return the view at one position of a dimension, which it has no more.

    Raises: T301 where a constant lies outside, T302 for what is no index.
    """
    extent = place_of(view).dims[dim].extent
    index = _from_end(_index(entry), extent)
    _check_constant(view, dim, index, extent, entry, below=True)
    return View(view.tensor, (*view.steps, Pick(dim, index)))


def cut(view: View, dim: int, entry: slice) -> View:
    """Return the view of a slice of a dimension.

    Raises: T301 where a constant lies outside, or the slice ends before it starts, T302 for what is no index or step.
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
    """Return the scalar that reads the one element of a rank-0 view.

    Raises: T302 for an element of a slice or of another shape than the tensor's.
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


def _from_end(index: s.Scalar, extent: s.Scalar) -> s.Scalar:
    return s.add(extent, index) if isinstance(index, s.Const) and int(index.value) < 0 else index


def _index(entry: object) -> s.Scalar:
    try:
        node = as_scalar(entry)
    except ArgumentKindError:
        if has_scalar(entry):
            raise   # a view says itself why it is none
        node = None
    if node is None or not s.scalar_dtype(node).is_integer:
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
