"""Ops that move elements and compute nothing: transpose, slices, concat, interleave, pad, reshape. Any dtype.

A tile stays a tile: an integer index keeps its axis with extent 1 (`x[3]` is [1, C], `x[:, 0]` is [R, 1]), and no slice is cut
silently to what is there. Offsets are constants; a piece at an offset known at run time is pto.load of a Tensor parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from typing import TypeAlias

import numpy as np

from pto_wsp.errors import OperandKindError, OperandShapeError, OptionValueError
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.tile import TileType
from pto_wsp.ops import typing
from pto_wsp.ops.entry import Arguments, Attrs, positional, shape_attr
from pto_wsp.ops.rounding import ALL, Array
from pto_wsp.ops.slices import WHOLE, Picked, pick
from pto_wsp.ops.whole import Copy, Movement
from pto_wsp.source import here

_KIND = Parameter.POSITIONAL_OR_KEYWORD
_Parts: TypeAlias = tuple[tuple[object, ...], Attrs]


def _only_x(bound: Mapping[str, object]) -> _Parts:
    return (bound["x"],), ()


def _block(operand: int, source: TileType, target: int, step: int) -> Copy:
    """Return the copy of a whole operand to element `target` of the result, whose rows are `step` elements."""
    return Copy(operand, source.rows, source.cols, (0, 0), (1, 0), (0, 1), target, (step, 1))


# ---- transpose and reshape ----

def _transposed(types: Sequence[TileType], result: TileType, attrs: Attrs) -> tuple[Copy, ...]:
    return (Copy(0, result.rows, result.cols, (0, 0), (0, 1), (1, 0), 0, (result.cols, 1)),)


transpose = Movement(name="transpose", synonyms=("t", "swapaxes", "permute", "moveaxis"),
                     doc="Return the tile with rows and columns exchanged; also x.T.", npu="TTRANS",
                     parameters=positional(("x",)), parts=_only_x, shape=lambda types, attrs: types[0].shape[::-1],
                     ref=lambda operands, attrs: operands[0].T, copies=_transposed, numpy="{0}.T", transposes=True,
                     undoes_itself=ALL)


def _reshape_parts(bound: Mapping[str, object]) -> _Parts:
    return (bound["x"],), (("shape", typing.as_shape("reshape", bound["shape"])),)


def _reshaped(types: Sequence[TileType], attrs: Attrs) -> tuple[int, int]:
    rows, cols = shape_attr(attrs)
    if rows * cols != types[0].n_elements:
        raise OperandShapeError(f"`pto.reshape`: [{rows}, {cols}] has another number of elements", here(),
                                expected=f"{types[0].n_elements} elements", found=f"{rows * cols}, from {types[0]!r}")
    return rows, cols


reshape = Movement(name="reshape", synonyms=("view", "flatten", "ravel", "squeeze", "unsqueeze", "expand_dims"),
                   doc="Return the elements, row by row, as a tile of another shape.", npu="TRESHAPE",
                   parameters=positional(("x", "shape")), parts=_reshape_parts, shape=_reshaped,
                   ref=lambda operands, attrs: operands[0].reshape(shape_attr(attrs)),
                   copies=lambda types, result, attrs: (_block(0, types[0], 0, types[0].cols),), numpy="{0}.reshape({shape})",
                   keeps_order=True)


# ---- slices ----

def _slice_parts(bound: Mapping[str, object]) -> _Parts:
    x = typing.require_tile("slice", bound["x"])
    return (x,), (("rows", pick(bound["rows"], x.shape[0], "row")), ("cols", pick(bound["cols"], x.shape[1], "column")))


def _slice_call(types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
    return (*operands, *map(_bracket, picked(attrs))), {}


def _bracket(part: Picked) -> slice:
    first, count, step = map(int, part)
    behind = first + (count - 1) * step + (1 if step > 0 else -1)
    return slice(first, None if behind < 0 else behind, step)


def picked(attrs: Attrs) -> tuple[Picked, Picked]:
    """Return what a slice picks of the rows and of the columns."""
    (r, rows, r_step), (c, cols, c_step) = (value for _, value in attrs if isinstance(value, tuple))
    return (r, rows, r_step), (c, cols, c_step)


def _sliced_shape(types: Sequence[TileType], attrs: Attrs) -> tuple[int, int]:
    (_, rows, _), (_, cols, _) = picked(attrs)
    return rows, cols


def _sliced(types: Sequence[TileType], result: TileType, attrs: Attrs) -> tuple[Copy, ...]:
    (row, rows, down), (col, cols, across) = picked(attrs)
    return (Copy(0, rows, cols, (row, col), (down, 0), (0, across), 0, (cols, 1)),)


def _sliced_array(operands: Sequence[Array], attrs: Attrs) -> Array:
    (row, rows, down), (col, cols, across) = picked(attrs)
    result: Array = operands[0][np.ix_(row + np.arange(rows) * down, col + np.arange(cols) * across)]
    return result


slice_ = Movement(name="slice", doc="Return x[rows, cols]: Python slices of constants; also written x[2:6, 0::2].", npu="TEXTRACT",
                  parameters=Signature([Parameter("x", _KIND), Parameter("rows", _KIND), Parameter("cols", _KIND, default=WHOLE)]),
                  parts=_slice_parts, shape=_sliced_shape, ref=_sliced_array, copies=_sliced, join=_slice_call,
                  numpy="{0}[{picked}]")


def _every_second(name: str, first: int, doc: str) -> Movement:
    def shape(types: Sequence[TileType], attrs: Attrs) -> tuple[int, int]:
        rows, cols = types[0].shape
        if cols % 2:
            raise OperandShapeError(f"`pto.{name}` halves the columns, of which there is an odd number", here(),
                                    expected="an even number of columns", found=repr(types[0]),
                                    help=f"slice it: x[:, {first}::2]")
        return rows, cols // 2

    def copies(types: Sequence[TileType], result: TileType, attrs: Attrs) -> tuple[Copy, ...]:
        return (Copy(0, result.rows, result.cols, (0, first), (1, 0), (0, 2), 0, (result.cols, 1)),)

    return Movement(name=name, doc=doc, npu="TDEINTERLEAVE", parameters=positional(("x",)), parts=_only_x, shape=shape,
                    ref=lambda operands, attrs: operands[0][:, first::2], copies=copies, numpy=f"{{0}}[:, {first}::2]")


slice_even = _every_second("slice_even", 0, "Return columns 0, 2, 4, ...: x[:, 0::2].")
slice_odd = _every_second("slice_odd", 1, "Return columns 1, 3, 5, ...: x[:, 1::2].")


# ---- several tiles ----

def _concat_parts(bound: Mapping[str, object]) -> _Parts:
    tiles = bound["tiles"]
    axis = typing.as_axis("concat", bound["axis"])
    if isinstance(tiles, tuple) and len(tiles) == 1 and isinstance(tiles[0], tuple | list):
        tiles = tuple(tiles[0])
    if not isinstance(tiles, tuple) or not tiles:
        raise OperandKindError("`pto.concat` takes tiles", here(), expected="pto.concat(a, b, axis=1)", found="none")
    return tuple(typing.require_tile("concat", tile) for tile in tiles), (("axis", axis),)


def _pad_call(types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
    (above, left), (rows, cols), (x, value) = _corner(attrs), shape_attr(attrs), operands
    widths = ((above, rows - above - types[0].rows), (left, cols - left - types[0].cols))
    return (x,), {"value": value, "widths": widths}


def _axis(attrs: Attrs) -> int:
    return next(value for name, value in attrs if name == "axis" and isinstance(value, int))


def _joined_shape(types: Sequence[TileType], attrs: Attrs) -> tuple[int, int]:
    axis = _axis(attrs)
    if any(t.shape[1 - axis] != types[0].shape[1 - axis] for t in types):
        what = "rows" if axis == 1 else "columns"
        raise OperandShapeError(f"`pto.concat`: tiles with different {what}", here(), expected=f"as many {what} in each",
                                found=" and ".join(map(repr, types)),
                                help=f"join them along the other axis: axis={1 - axis}"
                                if all(t.shape[axis] == types[0].shape[axis] for t in types) else None)
    joined = sum(t.shape[axis] for t in types)
    return (types[0].rows, joined) if axis == 1 else (joined, types[0].cols)


def _joined(types: Sequence[TileType], result: TileType, attrs: Attrs) -> tuple[Copy, ...]:
    copies: list[Copy] = []
    target = 0
    for operand, tile in enumerate(types):
        copies.append(_block(operand, tile, target, result.cols))
        target += tile.cols if _axis(attrs) == 1 else tile.n_elements
    return tuple(copies)


concat = Movement(name="concat", synonyms=("hstack", "vstack", "row_stack", "column_stack"),
                  doc="Return tiles joined along columns (axis=1) or rows (axis=0): concat(a, b, c, axis=1).",
                  npu="TCONCAT", parts=_concat_parts, shape=_joined_shape, copies=_joined,
                  parameters=Signature([Parameter("tiles", Parameter.VAR_POSITIONAL),
                                        Parameter("axis", Parameter.KEYWORD_ONLY, default=1)]),
                  ref=lambda operands, attrs: np.concatenate(operands, axis=_axis(attrs)),
                  numpy="np.concatenate(({all},), axis={axis})")


def _interleaved_shape(types: Sequence[TileType], attrs: Attrs) -> tuple[int, int]:
    if types[0].shape != types[1].shape:
        raise OperandShapeError("`pto.interleave`: tiles of different shapes", here(), expected="one shape",
                                found=" and ".join(map(repr, types)))
    return types[0].rows, 2 * types[0].cols


def _interleaved(types: Sequence[TileType], result: TileType, attrs: Attrs) -> tuple[Copy, ...]:
    return tuple(Copy(k, result.rows, types[k].cols, (0, 0), (1, 0), (0, 1), k, (result.cols, 2)) for k in (0, 1))


interleave = Movement(name="interleave", doc="Return the columns of a and b in turn: a0 b0 a1 b1 ..., [R, 2C].", npu="TINTERLEAVE",
                      parameters=positional(("a", "b")), parts=lambda bound: (tuple(bound.values()), ()),
                      shape=_interleaved_shape, copies=_interleaved,
                      ref=lambda operands, attrs: np.stack(operands, axis=2).reshape(operands[0].shape[0], -1),
                      numpy="np.stack(({0}, {1}), axis=2).reshape({shape})")


# ---- pad ----

def _pad_parts(bound: Mapping[str, object]) -> _Parts:
    x, shape, widths = typing.require_tile("pad", bound["x"]), bound["shape"], bound["widths"]
    if (shape is None) == (widths is None):
        raise OptionValueError("`pto.pad` takes a shape or widths", here(), found="neither" if shape is None else "both",
                               expected="shape=(rows, cols), or widths=((above, below), (left, right))")
    rows, cols = x.shape
    if widths is None:
        wanted = typing.as_shape("pad", shape)
        (above, below), (left, right) = (0, wanted[0] - rows), (0, wanted[1] - cols)
    else:
        (above, below), (left, right) = _widths(widths)
    if min(above, below, left, right) < 0:
        raise OperandShapeError("`pto.pad`: the result is smaller than the tile", here(), expected=f"at least [{rows}, {cols}]",
                                found=f"[{rows + above + below}, {cols + left + right}]", help="a slice makes it smaller: x[:8, :64]")
    value = bound["value"]
    if x.dtype.is_bool and type(value) is int and value in (0, 1):
        value = bool(value)
    return (x, value), (("at", (above, left)), ("shape", (rows + above + below, cols + left + right)))


def _widths(widths: object) -> tuple[tuple[int, int], tuple[int, int]]:
    if isinstance(widths, tuple | list) and len(widths) == 2 and all(isinstance(w, tuple | list) and len(w) == 2 for w in widths):
        above, below, left, right = (whole_number(n) for pair in widths for n in pair)
        if above is not None and below is not None and left is not None and right is not None:
            return (above, below), (left, right)
    raise OptionValueError("`pto.pad`: not the widths of a frame", here(), expected="((above, below), (left, right))",
                           found=repr(widths))


def _padded_shape(types: Sequence[TileType], attrs: Attrs) -> tuple[int, int]:
    if types[1].shape != (1, 1):
        raise OperandShapeError("`pto.pad`: the value is one number", here(), expected="a number, a scalar or a [1, 1] tile",
                                found=repr(types[1]))
    return shape_attr(attrs)


def _corner(attrs: Attrs) -> tuple[int, int]:
    row, col = next(value for name, value in attrs if name == "at" and isinstance(value, tuple))
    return row, col


def _padded(types: Sequence[TileType], result: TileType, attrs: Attrs) -> tuple[Copy, ...]:
    (row, col), (rows, cols), width = _corner(attrs), types[0].shape, result.cols
    bottom, right = row + rows, col + cols
    frame = ((0, 0, row, width), (row, 0, rows, col), (row, right, rows, width - right), (bottom, 0, result.rows - bottom, width))
    fills = tuple(Copy(1, n_rows, n_cols, (0, 0), (0, 0), (0, 0), r * width + c, (width, 1))
                  for r, c, n_rows, n_cols in frame if n_rows and n_cols)
    return (_block(0, types[0], row * width + col, width), *fills)


def _padded_array(operands: Sequence[Array], attrs: Attrs) -> Array:
    (row, col), (rows, cols) = _corner(attrs), operands[0].shape
    result: Array = np.full(shape_attr(attrs), operands[1][0, 0], operands[0].dtype)
    result[row:row + rows, col:col + cols] = operands[0]
    return result


pad = Movement(name="pad", doc="Return x in a larger tile of `value`: at the top left of `shape`, or in a frame of `widths`.",
               npu="TFILLPAD", parts=_pad_parts, shape=_padded_shape, ref=_padded_array, copies=_padded, fills=True, join=_pad_call,
               numpy="_pad({0}, {1}, {at}, {shape})",
               parameters=Signature([Parameter("x", _KIND), Parameter("shape", _KIND, default=None),
                                     Parameter("value", _KIND, default=0), Parameter("widths", _KIND, default=None)]))

ENTRIES = (transpose, reshape, slice_, slice_even, slice_odd, concat, interleave, pad)
