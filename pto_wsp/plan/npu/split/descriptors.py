"""Views as the device runtime has them: windows in a tensor's own dimensions, and where a kernel finds rows and columns in them.

A tensor lies contiguously on the device, whatever the strides of the array that the user wrapped: the package's arrays are its own.

>>> describe(View(x, (Pick(0, Const(2)), Permute((1, 0))))).access     # x[2].T of a [4, 16, 128] tensor
ParamAccess(row_dim=2, col_dim=1, rows=None, cols=None, unit_cols=False, unit_rows=True, ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import assert_never

from pto_wsp.errors import DeviceLimitError
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.plan.npu.between_tasks import extents_of
from pto_wsp.plan.npu.merge_dims import MAX_DIMS
from pto_wsp.plan.npu.model import Reshaped, Window
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.layout import Layout
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, View, declared, print_view
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Described:
    """The steps of a descriptor, how its rows and columns are found in it, and how many there are."""

    steps: tuple[Window | Reshaped, ...]
    access: ParamAccess
    extents: tuple[s.Scalar, s.Scalar]


@dataclass(slots=True)
class _Dim:
    """A dimension of the view so far: which one it is of what the window is taken from, and every how many elements count."""

    dim: int
    step: int = 1


@dataclass(slots=True)
class _Frame:
    """A contiguous array, and the window in it that the steps so far lead to. `whole`: its extents; `sizes`: as declared."""

    whole: tuple[s.Scalar, ...]
    sizes: tuple[int, ...]
    offset: list[s.Scalar] = field(init=False)
    shape: list[s.Scalar] = field(init=False)
    dims: list[_Dim] = field(init=False)

    def __post_init__(self) -> None:
        self.offset = [s.Const(0)] * len(self.whole)
        self.shape = list(self.whole)
        self.dims = [_Dim(k) for k in range(len(self.whole))]

    def window(self) -> tuple[Window, ...]:
        """Return the window, none where it is everything."""
        everything = all(at == s.Const(0) for at in self.offset) and tuple(self.shape) == self.whole
        return () if everything else (Window(tuple(self.offset), tuple(self.shape)),)

    def stride(self, at: _Dim) -> int:
        """Return how far apart neighbours of a dimension of the view are, in elements."""
        return Layout.contiguous(self.sizes).strides[at.dim] * at.step

    def extent(self, at: _Dim) -> s.Scalar:
        """Return the extent of a dimension of the view."""
        return s.ceil_div(self.shape[at.dim], s.Const(at.step)) if at.step > 1 else self.shape[at.dim]

    def pick(self, position: int, index: s.Scalar) -> None:
        """Take one position of a dimension, which goes."""
        at = self.dims.pop(position)
        self._move(at, index)
        self.shape[at.dim] = s.Const(1)

    def cut(self, position: int, cut: Cut) -> None:
        """Take start, start + step, … below stop of a dimension."""
        at = self.dims[position]
        rest = s.sub(self.shape[at.dim], s.mul(cut.start, s.Const(at.step)))
        wanted = s.mul(s.sub(cut.stop, cut.start), s.Const(at.step))
        self._move(at, cut.start)
        self.shape[at.dim] = rest if cut.stop == s.ceil_div(self.shape[at.dim], s.Const(at.step)) else (
            wanted if at.step == 1 else s.minimum(wanted, rest))
        self.dims[position] = _Dim(at.dim, at.step * cut.step)

    def clip(self, limits: Sequence[int]) -> None:
        """Keep at most so many positions of each dimension."""
        for at, limit in zip(self.dims, limits, strict=True):
            self.shape[at.dim] = s.minimum(self.shape[at.dim], s.Const(limit * at.step))

    def is_contiguous(self) -> bool:
        """Tell whether the view's elements, row by row, lie one behind the other."""
        known = [declared(self.extent(at)) for at in self.dims]
        extents = tuple(int(extent.value) if isinstance(extent, s.Const) else 0 for extent in known)
        dense = Layout.contiguous(extents).strides
        return 0 in extents or all(extent == 1 or self.stride(at) == want
                                   for extent, at, want in zip(extents, self.dims, dense, strict=True))

    def _move(self, at: _Dim, index: s.Scalar) -> None:
        self.offset[at.dim] = s.add(self.offset[at.dim], s.mul(index, s.Const(at.step)))


def describe(view: View, span: Span, *, allocated: bool = False) -> Described:
    """Return the descriptor of a view of rank 1 or 2. Extents that are declared to be numbers stand in its access.

    `allocated`: the tensor is no argument, so that its extents are those declared.

    Raises: N101 for more dimensions than the runtime has, and for a view that is not contiguous on the device and is reshaped.
    """
    tensor = view.tensor
    frame = _Frame(extents_of(tensor, allocated=allocated), tensor.shape)
    _check_rank(view, tensor.shape, span)
    steps: list[Window | Reshaped] = []
    for step in view.steps:
        match step:
            case Pick(dim, index):
                frame.pick(dim, index)
            case Cut(dim):
                frame.cut(dim, step)
            case Clip(limits):
                frame.clip(limits)
            case Permute(order):
                frame.dims = [frame.dims[k] for k in order]
            case Reshape(shape):
                _check_rank(view, shape, span)
                if not frame.is_contiguous():
                    raise DeviceLimitError(f"`{print_view(view)}` reshapes what does not lie contiguously on the device", span,
                                           expected="a contiguous view of a tensor in row-major order",
                                           help="bind the array in the shape that the kernels need")
                for at in frame.dims:
                    if at.step > 1:   # then there is one position
                        frame.shape[at.dim] = s.minimum(frame.shape[at.dim], s.Const(1))
                steps += (*frame.window(), Reshaped(shape))
                frame = _Frame(tuple(s.Const(extent) for extent in shape), shape)
            case _:
                assert_never(step)
    return Described((*steps, *frame.window()), _access(frame), _extents(frame))


def _check_rank(view: View, shape: tuple[int, ...], span: Span) -> None:
    if len(shape) > MAX_DIMS:
        raise DeviceLimitError(f"`{print_view(view)}` has too many dimensions for the device runtime", span,
                               expected=f"at most {MAX_DIMS} dimensions", found=f"{len(shape)}: {list(shape)}",
                               help="wrap the array with its leading dimensions as one: Tensor(array.reshape(-1, ...))")


def _rows_and_columns(frame: _Frame) -> tuple[_Dim | None, _Dim]:
    """Return the dimensions for rows and columns; rank 1 is one row."""
    *rows, cols = frame.dims
    return rows[0] if rows else None, cols


def _extents(frame: _Frame) -> tuple[s.Scalar, s.Scalar]:
    rows, cols = _rows_and_columns(frame)
    return s.Const(1) if rows is None else frame.extent(rows), frame.extent(cols)


def _access(frame: _Frame) -> ParamAccess:
    rows, cols = _rows_and_columns(frame)
    n_rows, n_cols = (_declared(extent) for extent in _extents(frame))
    unit_cols = n_cols == 1 or frame.stride(cols) == 1
    if rows is None:
        return ParamAccess(None, cols.dim, 1, cols.step, n_rows, n_cols, unit_cols, True)
    return ParamAccess(rows.dim, cols.dim, rows.step, cols.step, n_rows, n_cols, unit_cols, n_rows == 1 or frame.stride(rows) == 1)


def _declared(extent: s.Scalar) -> int | None:
    known = declared(extent)
    return int(known.value) if isinstance(known, s.Const) else None


def merged_access(accesses: Sequence[ParamAccess]) -> ParamAccess:
    """Return the one access of several that differ in their extents alone: an extent that is not the same in all is read at run time."""
    first = accesses[0]
    rows = first.rows if all(access.rows == first.rows for access in accesses) else None
    cols = first.cols if all(access.cols == first.cols for access in accesses) else None
    return replace(first, rows=rows, cols=cols)


def known_window(found: Described, access: ParamAccess) -> Described:
    """Return the same with extents that the access knows as numbers in its window: checks see to it that they are those."""
    last = found.steps[-1] if found.steps else None
    if not isinstance(last, Window):
        return found
    shape = list(last.shape)
    extents = list(found.extents)
    axes = (access.row_dim, access.row_step, access.rows), (access.col_dim, access.col_step, access.cols)
    for at, (dim, step, extent) in enumerate(axes):
        if dim is not None and step == 1 and extent is not None:
            shape[dim] = extents[at] = s.Const(extent)
    return replace(found, steps=(*found.steps[:-1], Window(last.offset, tuple(shape))), extents=(extents[0], extents[1]))
