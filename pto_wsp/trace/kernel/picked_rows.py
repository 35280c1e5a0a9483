"""Trace pto.gather, pto.scatter and pto.scatter_add: ops of the table on tiles, rows of memory on a Tensor parameter."""

from __future__ import annotations

from pto_wsp.errors import (
    BufferMisuseError,
    MixedDTypeError,
    OperandKindError,
    OperandShapeError,
    OptionValueError,
    UnsupportedDTypeError,
    ViewBoundsError,
)
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries import index as tiles
from pto_wsp.ops.entry import Operand, user_call
from pto_wsp.ops.typing import check_dtype
from pto_wsp.ops.whole import TileFunction
from pto_wsp.source import here
from pto_wsp.trace.kernel.tile_value import TensorParamRef, TileValue, is_tile
from pto_wsp.trace.kernel.trace import KernelTrace, constant, current_kernel, pair


@user_call("pto.gather")
def gather(x: object, index: object, axis: object = None, cols: object = None, valid: object = None, fill: object = 0) -> Operand:
    """Return elements of a tile, or rows of a Tensor parameter, that an index of i32 or i64 picks.

    Of a tile: x[r, index[r, c]] (axis=1, the default) or x[index[r, c], c] (axis=0), as np.take_along_axis; extents of 1
    broadcast, so an index [N, 1] on axis 0 picks whole rows.
    Of a Tensor parameter: the tile [N, n] of rows index[0 .. N-1, 0], `cols` = (first column, n) of each; n columns from 0 on for
    a plain number. `valid`: how many entries of the index count, a scalar of the kernel; the rows behind are `fill`.
    Raises: T204, T207, T209, T213, T202 for what does not fit, K106 for an Out parameter. An index outside stops the task when it runs.
    """
    name = tiles.gather.name
    if not isinstance(x, TensorParamRef):
        _refuse_region_options(name, cols, valid, fill)
        return tiles.gather(x, index, 1 if axis is None else axis)
    trace, param = current_kernel(name), x.param
    _check_axis(name, axis)
    if not param.role.reads:
        raise BufferMisuseError(f"Out parameter `{param.name}` cannot be read", here(), expected="In or InOut",
                                found=f"declared at {param.span}", help="declare it InOut to read what it holds")
    rows = _index(trace, name, index)
    if cols is None:
        raise OptionValueError("`pto.gather` needs to know how many columns", here(), expected="cols=(first, count), or cols=count",
                               help=f"pto.gather({param.name}, index, cols=64)")
    col, count = _columns(trace, name, cols)
    result = trace.fresh(TileType(rows.type.rows, count, param.dtype))
    filled = constant("`pto.gather`: fill", False if param.dtype.is_bool and fill == 0 else fill, param.dtype)
    trace.append(k.Gather(result.value, param.name, rows.value, col, _valid(trace, name, valid), filled, span=here()))
    return result


@user_call("pto.scatter")
def scatter(x: object, index: object, value: object, axis: object = None, cols: object = None, valid: object = None) -> Operand | None:
    """Return a tile with the elements that an index picks replaced, or write rows of a Tensor parameter.

    Of a tile: x with x[r, index[r, c]] = value[r, c] (axis=1, the default) or x[index[r, c], c] = value[r, c] (axis=0), row by
    row, so that the last one stays; x itself stays as it is.
    Of an Out or InOut Tensor parameter: row n of the value becomes row index[n, 0], in `cols` = (first column, n), by default
    from column 0 on as many as the value has. `valid`: how many entries of the index count. Nothing is returned.
    Raises: as pto.gather; K106 for an In parameter.
    """
    return _scatter(tiles.scatter, x, index, value, axis, cols, valid)


@user_call("pto.scatter_add")
def scatter_add(x: object, index: object, value: object, axis: object = None, cols: object = None, valid: object = None) -> Operand | None:
    """Return a tile with values added at the elements that an index picks, or add to rows of an InOut Tensor parameter.

    As pto.scatter; what meets at one place is added one by one, row by row. A half rounds at each addition.
    """
    return _scatter(tiles.scatter_add, x, index, value, axis, cols, valid)


def _scatter(op: TileFunction, x: object, index: object, value: object, axis: object, cols: object, valid: object) -> Operand | None:
    name, adds = op.name, op is tiles.scatter_add
    if not isinstance(x, TensorParamRef):
        _refuse_region_options(name, cols, valid, 0)
        return op(x, index, value, 1 if axis is None else axis)
    trace, param = current_kernel(name), x.param
    _check_axis(name, axis)
    trace.check_writable(param)
    if adds and not param.role.reads:
        raise BufferMisuseError(f"Out parameter `{param.name}` holds nothing to add to", here(), expected="InOut",
                                found=f"declared at {param.span}", help="declare it InOut to add to what it holds")
    rows = _index(trace, name, index)
    stored = _value(trace, name, param, rows, value, cols)
    if adds:
        check_dtype(name, stored.type, op.dtypes)
    col = s.Const(0) if cols is None else _columns(trace, name, cols)[0]
    trace.append(k.Scatter(param.name, rows.value, stored.value, col, _valid(trace, name, valid), adds, span=here()))
    trace.stored.add(param.name)
    return None


def _value(trace: KernelTrace, name: str, param: k.TensorParam, rows: TileValue, value: object, cols: object) -> TileValue:
    """Return the scattered value as a tile with one row for each entry of the index."""
    where = f"parameter `{param.name}`"
    if cols is not None:
        count = _columns(trace, name, cols)[1]
    elif is_tile(value):
        count = value.shape[1]
    else:
        raise OptionValueError(f"`pto.{name}` of a number needs to know how many columns", here(), found=repr(value),
                               expected="cols=(first, count), or cols=count")
    if is_tile(value) and value.dtype is not param.dtype:
        raise MixedDTypeError(f"{where}: the value has another dtype", here(), expected=str(param.dtype),
                              found=repr(value), help=f"convert it: pto.cast(value, {param.dtype!r})")
    return trace.fitted(where, value, TileType(rows.type.rows, count, param.dtype))


def _index(trace: KernelTrace, name: str, index: object) -> TileValue:
    if not is_tile(index):
        raise OperandKindError(f"`pto.{name}`: the index is a tile", here(), expected="a tile [N, 1] of i32 or i64", found=repr(index),
                               help="one row alone is pto.load(T, (row, 0), shape=(1, n))" if name == tiles.gather.name else None)
    if not index.dtype.is_index:
        raise UnsupportedDTypeError(f"`pto.{name}`: the index is no tile of whole numbers", here(), expected="i32 or i64",
                                    found=repr(index), help="convert it: pto.cast(index, DType.I32)")
    if index.shape[1] != 1:
        help = "transpose it: index.T" if index.shape[0] == 1 else "reshape it: pto.reshape(index, (n, 1))"
        raise OperandShapeError(f"`pto.{name}`: the index of rows has one column", here(), expected="[N, 1]", found=repr(index), help=help)
    return trace.read(index)


def _columns(trace: KernelTrace, name: str, cols: object) -> tuple[s.Scalar, int]:
    """Return the first column and the number of columns."""
    where = f"`pto.{name}`: cols"
    if isinstance(cols, tuple | list):
        first, _ = pair(trace, where, cols)
        count = whole_number(cols[1])
    else:
        first, count = s.Const(0), whole_number(cols)
    if count is None or count < 1:
        raise OptionValueError(f"{where}: the number of columns is >= 1 and known when the kernel is traced", here(),
                               expected="(first, count), or count", found=repr(cols))
    if isinstance(first, s.Const) and first.value < 0:
        raise ViewBoundsError(f"{where}: the first column is negative", here(), expected=">= 0", found=str(first.value))
    return first, count


def _valid(trace: KernelTrace, name: str, valid: object) -> s.Scalar | None:
    return None if valid is None else trace.whole(f"`pto.{name}`: valid", valid)


def _check_axis(name: str, axis: object) -> None:
    if axis is not None and axis != 0:
        raise OptionValueError(f"`pto.{name}` picks rows of a Tensor parameter", here(), expected="no axis, or axis=0",
                               found=f"axis={axis!r}",
                               help="load a tile and pick its columns: pto.gather(pto.load(T, (row, col), shape=(r, c)), index)")


def _refuse_region_options(name: str, cols: object, valid: object, fill: object) -> None:
    if cols is not None or valid is not None or fill != 0:
        raise OptionValueError(f"`pto.{name}`: cols, valid and fill are for rows of a Tensor parameter", here(),
                               expected="a Tensor parameter first", help="of a tile take part after: x[:, 0:64]")
