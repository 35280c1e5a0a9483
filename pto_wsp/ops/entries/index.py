"""Ops on the order and the place of elements: sort, argsort, topk, rowargmax, rowargmin, gather, scatter, scatter_add.

Order is NumPy's: NaN is the largest, -0.0 equals 0.0, and of equal elements the one in the lower column comes first. An index is a
tile of i32 or i64 with values in 0 .. extent - 1; one outside, negative ones too, ends the task with an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature

import numpy as np

from pto_wsp.errors import MixedDTypeError, NumberError, OperandShapeError, OptionValueError, UnsupportedDTypeError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.tile import TileType
from pto_wsp.ops import typing
from pto_wsp.ops.entries.create import expand
from pto_wsp.ops.entry import Arguments, Attrs, Operand, Work, active, is_tile, positional, user_call
from pto_wsp.ops.rounding import ALL, COMPUTED, INTEGERS, NUMBERS, Array
from pto_wsp.ops.traits import Fill
from pto_wsp.ops.whole import CallSlot, CArgument, CCall, IndexFault, Pointer, RowStep, TileFunction
from pto_wsp.source import here

_KIND = Parameter.POSITIONAL_OR_KEYWORD


def _attr(attrs: Attrs, wanted: str) -> int:
    return next(value for name, value in attrs if name == wanted and isinstance(value, int))


# ---- order ----

def _columns_in_order(x: Array, descending: bool) -> Array:
    """Return the columns of each row in order, of equal elements the lower first."""
    numbers = x.astype(np.float32) if DType.from_numpy(x.dtype).is_float and x.dtype.itemsize < 4 else x
    if descending:
        turned: Array = numbers.shape[1] - 1 - np.argsort(numbers[:, ::-1], axis=1, kind="stable")[:, ::-1]
        return turned
    order: Array = np.argsort(numbers, axis=1, kind="stable")
    return order


def _order_call(types: Sequence[TileType], result: TileType, attrs: Attrs) -> CCall:
    x = types[0]
    key_bytes = 8 if x.dtype.nbytes == 8 else 4
    return CCall("pto_sort.h", f"pto_order_{x.dtype}",
                 (CallSlot.RESULT, x.rows, x.cols, result.cols, Pointer(0), RowStep(0), int(_attr(attrs, "descending")), CallSlot.WORK),
                 work_bytes=2 * x.cols * (key_bytes + 4))


def _order_tail(attrs: Attrs) -> Fill:
    return Fill.LOWEST if _attr(attrs, "descending") else Fill.NAN_OR_HIGHEST      # NaN is the largest, and stands last


def _as_flag(name: str, what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise OptionValueError(f"`pto.{name}`: {what} is True or False", here(), found=repr(value))
    return value


def _argsort_parts(bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
    return (bound["x"],), (("descending", _as_flag("argsort", "descending", bound["descending"])),)


argsort = TileFunction(
    name="argsort", doc="Return the columns of each row's elements in order, i32; of equal elements the lower column first.",
    npu="TSORT32", work=Work.SORT, dtypes=COMPUTED, parts=_argsort_parts, call=_order_call, numpy="_order({0}, {descending})",
    gives_columns=True, sorts=True, tail=_order_tail,
    parameters=Signature([Parameter("x", _KIND), Parameter("descending", _KIND, default=False)]),
    result=lambda types, attrs: types[0].with_dtype(DType.I32),
    ref=lambda operands, attrs: _columns_in_order(operands[0], bool(_attr(attrs, "descending"))))


def _topk_parts(bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
    x, k = typing.require_tile("topk", bound["x"]), whole_number(bound["k"])
    if k is None:
        raise NumberError("`pto.topk`: k is a whole number known when the kernel is traced", here(), found=repr(bound["k"]),
                          help="take it from a Constexpr[int] parameter")
    if not 1 <= k <= x.shape[1]:
        raise OperandShapeError(f"`pto.topk`: k is {k}", here(), expected=f"1 .. {x.shape[1]}, the columns of the tile", found=str(k))
    return (x,), (("k", k), ("descending", _as_flag("topk", "largest", bound["largest"])))


def _topk_call(types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
    return operands, {"largest" if name == "descending" else name: value for name, value in attrs}


_topk = TileFunction(
    name="topk", doc="Return the columns of the k largest (or smallest) elements of each row, the best first, i32.",
    npu="TSORT32", work=Work.SORT, dtypes=COMPUTED, parts=_topk_parts, join=_topk_call, call=_order_call,
    numpy="_order({0}, {descending})[:, :{k}]", gives_columns=True, sorts=True, tail=_order_tail,
    parameters=Signature([Parameter("x", _KIND), Parameter("k", _KIND), Parameter("largest", _KIND, default=True)]),
    result=lambda types, attrs: TileType(types[0].rows, _attr(attrs, "k"), DType.I32),
    ref=lambda operands, attrs: _columns_in_order(operands[0], bool(_attr(attrs, "descending")))[:, :_attr(attrs, "k")])


@user_call("pto.sort")
def sort(x: Operand, descending: bool = False) -> Operand:
    """Return each row in order; NaN is the largest, as in NumPy."""
    active("sort")
    x = typing.require_tile("sort", x)
    return _taken(x, argsort(x, _as_flag("sort", "descending", descending)))


@user_call("pto.topk")
def topk(x: Operand, k: int, largest: bool = True) -> tuple[Operand, Operand]:
    """Return the k largest (or smallest) elements of each row, the best first, and their columns, i32.

    NaN is the largest; of equal elements the one in the lower column comes first.
    """
    active("topk")
    x = typing.require_tile("topk", x)
    columns = _topk(x, k, largest)
    return _taken(x, columns), columns


def _taken(x: Operand, columns: Operand) -> Operand:
    return active("gather").emit(gather.name, (x, columns), (("axis", 1), ("inside", True)))


def _rowarg(name: str, doc: str, npu: str, smallest: bool) -> TileFunction:
    def found(operands: Sequence[Array], attrs: Attrs) -> Array:
        x = operands[0]
        numbers = x.astype(np.float32) if DType.from_numpy(x.dtype).is_float and x.dtype.itemsize < 4 else x
        place: Array = (np.argmin if smallest else np.argmax)(numbers, axis=1, keepdims=True)
        return place

    def call(types: Sequence[TileType], result: TileType, attrs: Attrs) -> CCall:
        x = types[0]
        return CCall("pto_sort.h", f"pto_rowarg_{x.dtype}", (CallSlot.RESULT, x.rows, x.cols, Pointer(0), RowStep(0), int(smallest)))

    return TileFunction(name=name, doc=doc, npu=npu, dtypes=COMPUTED, parameters=positional(("x",)),
                        parts=lambda bound: ((bound["x"],), ()), result=lambda types, attrs: TileType(types[0].rows, 1, DType.I32),
                        ref=found, call=call, numpy=f"_first(np.{'argmin' if smallest else 'argmax'}, {{0}})", gives_columns=True,
                        tail=lambda attrs: Fill.HIGHEST if smallest else Fill.LOWEST)


rowargmax = _rowarg("rowargmax", "Return the column of each row's first largest element, [R, 1] i32; of a NaN if there is one.",
                    "TROWARGMAX", smallest=False)
rowargmin = _rowarg("rowargmin", "Return the column of each row's first smallest element, [R, 1] i32; of a NaN if there is one.",
                    "TROWARGMIN", smallest=True)


# ---- place ----

def _steps(operand: int, tile: TileType) -> tuple[CArgument, CArgument]:
    """Return the elements from row to row and from column to column, 0 where the operand broadcasts."""
    return RowStep(operand) if tile.rows > 1 else 0, 1 if tile.cols > 1 else 0


def _check_index(name: str, index: TileType) -> None:
    if not index.dtype.is_index:
        raise UnsupportedDTypeError(f"`pto.{name}`: the index is no tile of whole numbers", here(), expected="i32 or i64",
                                    found=repr(index), help="convert it: pto.cast(index, DType.I32)")


def _joint(name: str, what: str, *extents: int) -> int:
    """Return the extent that broadcasts to all."""
    largest = max(extents)
    if any(extent not in (1, largest) for extent in extents):
        raise OperandShapeError(f"`pto.{name}`: the tiles' {what} do not fit", here(), expected=f"equal {what}, or 1",
                                found=" and ".join(map(str, extents)))
    return largest


def _index_fault(operands: Sequence[Array], attrs: Attrs) -> IndexFault | None:
    extent, index = operands[0].shape[_attr(attrs, "axis")], operands[1]
    outside = np.argwhere((index < 0) | (index >= extent))
    if not outside.size:
        return None
    row, col = (int(n) for n in outside[0])
    return IndexFault(row, col, int(index[row, col]), extent)


def _gather_parts(bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
    return (bound["x"], bound["index"]), (("axis", typing.as_axis("gather", bound["axis"])),)


def _gathered(types: Sequence[TileType], attrs: Attrs) -> TileType:
    x, index = types
    _check_index("gather", index)
    if _attr(attrs, "axis") == 1:
        return TileType(_joint("gather", "rows", x.rows, index.rows), index.cols, x.dtype)
    return TileType(index.rows, _joint("gather", "columns", x.cols, index.cols), x.dtype)


def _gather_call(types: Sequence[TileType], result: TileType, attrs: Attrs) -> CCall:
    x, index = types
    row, col = _steps(0, x)
    by_column = _attr(attrs, "axis") == 1
    place: tuple[CArgument, ...] = (row, 0, col) if by_column else (0, col, row)
    return CCall("pto_index.h", f"pto_gather_{8 * x.dtype.nbytes}_{index.dtype}",
                 (CallSlot.RESULT, result.rows, result.cols, Pointer(0), *place, Pointer(1), *_steps(1, index),
                  x.cols if by_column else x.rows, CallSlot.FAULT))


gather = TileFunction(
    name="gather", synonyms=("take", "index_select"),
    doc="Return x[r, index[r, c]] (axis=1) or x[index[r, c], c] (axis=0), as np.take_along_axis; extents of 1 broadcast.",
    npu="TGATHER", dtypes=ALL, parts=_gather_parts, result=_gathered, call=_gather_call, fault=_index_fault,
    numpy="_take({0}, {1}, {axis})", keeps_range=INTEGERS,
    parameters=Signature([Parameter("x", _KIND), Parameter("index", _KIND), Parameter("axis", _KIND, default=1)]),
    ref=lambda operands, attrs: _picked(operands[0], operands[1], _attr(attrs, "axis")))


def _picked(x: Array, index: Array, axis: int) -> Array:
    shape = (x.shape[0], 1) if axis == 1 else (1, x.shape[1])
    shape = (max(shape[0], index.shape[0]), index.shape[1]) if axis == 1 else (index.shape[0], max(shape[1], index.shape[1]))
    whole = np.broadcast_to(x, (shape[0], x.shape[1]) if axis == 1 else (x.shape[0], shape[1]))
    result: Array = np.take_along_axis(whole, np.broadcast_to(index, shape).astype(np.int64), axis)
    return result


def _scattered(name: str) -> TileFunction:
    adds = name == "scatter_add"

    def parts(bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        x, value = typing.require_tile(name, bound["x"]), bound["value"]
        if not is_tile(value):
            value = active(name).emit(expand.name, (value,), (("shape", (1, 1)), ("dtype", x.dtype)))
        return (x, bound["index"], value), (("axis", typing.as_axis(name, bound["axis"])),)

    def result(types: Sequence[TileType], attrs: Attrs) -> TileType:
        x, index, value = types
        _check_index(name, index)
        if value.dtype is not x.dtype:
            raise MixedDTypeError(f"`pto.{name}`: the values have another dtype", here(), expected=str(x.dtype), found=repr(value),
                                  help=f"convert them: pto.cast(value, {x.dtype!r})")
        rows, cols = _places(x, index, attrs)
        fits = index.rows in (1, rows) and index.cols in (1, cols) and value.rows in (1, rows) and value.cols in (1, cols)
        if not fits:
            raise OperandShapeError(f"`pto.{name}`: index and values do not fit the tile", here(),
                                    expected=f"[{rows}, {cols}] each, or 1 in place of either", found=f"{index!r} and {value!r}")
        return x

    def call(types: Sequence[TileType], result: TileType, attrs: Attrs) -> CCall:
        x, index, value = types
        by_column = _attr(attrs, "axis") == 1
        row, col = (x.cols if x.rows > 1 else 0), (1 if x.cols > 1 else 0)
        place: tuple[CArgument, ...] = (row, 0, col) if by_column else (0, col, row)
        kind = f"scatter_add_{x.dtype}" if adds else f"scatter_{8 * x.dtype.nbytes}"
        return CCall("pto_index.h", f"pto_{kind}_{index.dtype}",
                     (CallSlot.RESULT, *place, *_places(x, index, attrs), Pointer(1), *_steps(1, index), Pointer(2), *_steps(2, value),
                      x.cols if by_column else x.rows, CallSlot.FAULT), copied=0)

    def ref(operands: Sequence[Array], attrs: Attrs) -> Array:
        x, index, value = operands
        by_column = _attr(attrs, "axis") == 1
        shape = (x.shape[0], index.shape[1]) if by_column else (index.shape[0], x.shape[1])
        rows, cols = np.indices(shape)
        picked = np.broadcast_to(index, shape)
        at, written, out = (rows, picked) if by_column else (picked, cols), np.broadcast_to(value, shape), x.copy()
        if adds:
            np.add.at(out, at, written)
        else:
            out[at] = written
        return out

    doc = ("Return x with `value` added at the places that `index` names, one by one, row by row; a half rounds at each."
           if adds else "Return x with the elements that `index` names replaced by `value`, row by row; the last one stays.")
    return TileFunction(name=name, doc=doc, npu=None if adds else "TSCATTER", dtypes=NUMBERS if adds else ALL, parts=parts,
                        result=result, ref=ref, call=call, fault=_index_fault, keeps_range=() if adds else INTEGERS,
                        numpy="_put({0}, {1}, {2}, {axis}" + (", add=True)" if adds else ")"),
                        parameters=Signature([*(Parameter(p, _KIND) for p in ("x", "index", "value")),
                                              Parameter("axis", _KIND, default=1)]))


def _places(x: TileType, index: TileType, attrs: Attrs) -> tuple[int, int]:
    """Return rows and columns of what is scattered."""
    return (x.rows, index.cols) if _attr(attrs, "axis") == 1 else (index.rows, x.cols)


scatter = _scattered("scatter")
scatter_add = _scattered("scatter_add")

ENTRIES = (argsort, _topk, rowargmax, rowargmin, gather, scatter, scatter_add)
FUNCTIONS = (sort, topk)
