"""Trace the statements that move data, make state and read elements: pto.load, pto.store, pto.alloc, pto.item."""

from __future__ import annotations

from pto_wsp.calls import user_call
from pto_wsp.errors import (
    BufferMisuseError,
    LeadingAxesError,
    MixedDTypeError,
    NumberError,
    OperandKindError,
    OptionValueError,
    ViewBoundsError,
)
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import TileType, indices, part_name
from pto_wsp.ops.entry import Operand
from pto_wsp.ops.rounding import ALL
from pto_wsp.ops.typing import as_dtype, as_shape
from pto_wsp.source import here, user_frame
from pto_wsp.trace.bytecode import assigned_name
from pto_wsp.trace.kernel.stack import TileStack, assign, check_leading, is_long
from pto_wsp.trace.kernel.tile_value import BufferRef, TensorParamRef, TileParamRef, is_tile
from pto_wsp.trace.kernel.trace import KernelTrace, constant, current_kernel, pair

_Extents = tuple[s.Scalar | None, s.Scalar | None]


@user_call("pto.load")
def load(source: object, at: object = None, shape: object = None, valid: object = None, fill: object = 0,
         transpose: bool = False) -> Operand:
    """Return a parameter or buffer as it is now, or the piece of `shape` that starts at `at` = (row, col).

    A Tensor parameter needs `shape`; offsets and `valid` may be scalars of the kernel. Outside the first `valid` = (rows,
                                                                                                                     cols) of
    the piece, the value is `fill` and nothing is read. `transpose`: the result is the piece of `shape` transposed.
    Raises: T207, T209, T213, T301 for what does not fit; K106 for an Out parameter that holds nothing yet. A piece of a Tensor parameter
    that lies outside it stops the task when it runs.
    """
    trace = current_kernel("load")
    plain = at is None and shape is None and valid is None and fill == 0 and not transpose
    if isinstance(source, TileStack):
        if not plain:
            _refuse_piece("load", source)
        loaded: Operand = source[:]
        return loaded
    if is_tile(source) and plain:
        return trace.read(source)
    if not isinstance(source, TileParamRef | TensorParamRef):
        raise OperandKindError("`pto.load` reads pieces of a parameter", here(), expected="a Tile or Tensor parameter",
                               found=repr(source))
    param = source.param
    _check_source(trace, param)
    if isinstance(param, k.TileParam) and shape is None:
        shape = param.type.shape if at is None else None
    if shape is None:
        raise OptionValueError("`pto.load` needs the shape of the piece", here(), expected="shape=(rows, cols)",
                               help=f"pto.load({param.name}, (row, col), shape=(16, 64))")
    dtype = param.dtype
    rows, cols = as_shape("load", shape)
    row, col = (s.Const(0), s.Const(0)) if at is None else pair(trace, "`pto.load`: the offset", at)
    _check_inside("load", param, row, col, rows, cols)
    valid_rows, valid_cols = valid_part(trace, "load", valid)
    result = trace.fresh(TileType(cols, rows, dtype) if transpose else TileType(rows, cols, dtype))
    filled = constant("`pto.load`: fill", False if dtype.is_bool and fill == 0 else fill, dtype)
    trace.append(k.Load(result.value, param.name, row, col, valid_rows, valid_cols, filled, bool(transpose), span=here()))
    return result


@user_call("pto.store")
def store(target: object, value: object, at: object = None, valid: object = None) -> None:
    """Write a tile to an Out or InOut parameter: to all of it (smaller tiles and numbers broadcast), or at `at` = (row, col).

    Only the first `valid` = (rows, cols) of the value are written.
    Raises: K106 for an In parameter; T202, T203, T209, T213, T301 for what does not fit.
    """
    trace = current_kernel("store")
    if isinstance(target, TileStack):
        if at is not None or valid is not None:
            _refuse_piece("store", target)
        assign(target, value)
        return
    if isinstance(target, BufferRef) and at is None and valid is None:
        trace.assign(target, value)
        return
    if not isinstance(target, TileParamRef | TensorParamRef):
        swapped = isinstance(value, TileParamRef | TensorParamRef)
        raise OperandKindError("`pto.store` writes to a parameter", here(),
                               expected="an Out or InOut parameter first, then the "
                               "value", found=repr(target), help="exchange the arguments" if swapped else None)
    param = target.param
    extents = valid_part(trace, "store", valid)
    if isinstance(param, k.TileParam) and at is None:
        trace.store_whole(param, value, extents)
        return
    trace.check_writable(param)
    dtype = param.dtype
    tile = trace.read(value) if is_tile(value) else trace.fitted(f"parameter `{param.name}`", value, TileType(1, 1, dtype))
    if tile.dtype is not dtype:
        raise MixedDTypeError(f"parameter `{param.name}`: the value has another dtype", here(), expected=str(dtype),
                              found=repr(tile.type), help=f"convert it: pto.cast(value, {dtype!r})")
    row, col = (s.Const(0), s.Const(0)) if at is None else pair(trace, "`pto.store`: the offset", at)
    _check_inside("store", param, row, col, *tile.shape)
    trace.append(k.Store(param.name, tile.value, row, col, *extents, span=here()))
    trace.stored.add(param.name)


@user_call("pto.alloc")
def alloc(shape: object, dtype: object, init: object = None) -> BufferRef | TileStack:
    """Return a buffer: state that a kernel reads by naming it and writes with `[:] =` and `+=`.

    A shape of rank 3 and more gives a buffer for each of its tiles.

    `init`: the initial value of all elements; without `init` the buffer must be written before it is read.
    """
    trace, name = current_kernel("alloc"), assigned_name(user_frame()) or "buffer"
    if not isinstance(shape, tuple | list) or not is_long(shape):
        return allocate(trace, name, shape, dtype, init)
    leading = tuple(int(n) for n in shape[:-2])
    check_leading("`pto.alloc`", leading)
    parts = [allocate(trace, part_name(name, index), shape[-2:], dtype, init) for index in indices(leading)]
    return TileStack(leading, parts, f"buffer `{name}`")


def allocate(trace: KernelTrace, name: str, shape: object, dtype: object, init: object) -> BufferRef:
    """Append the allocation of a buffer of two axes called `name`, as `alloc` does."""
    rows, cols = as_shape("alloc", shape)
    held = as_dtype("alloc", dtype, ALL)
    if is_tile(init):
        raise NumberError("`pto.alloc`: init is a number", here(), expected="a number known when the kernel is traced",
                          found=repr(init), help="write the tile after: acc = pto.alloc(...); acc[:] = value")
    number = None if init is None else constant("`pto.alloc`: init", bool(init) if held.is_bool and init in (0,
                                                                                                                   1) else init,
                                                held)
    return trace.new_buffer(name, TileType(rows, cols, held), number)


def _refuse_piece(name: str, stack: TileStack) -> None:
    raise LeadingAxesError(f"`pto.{name}` moves a piece of one tile", here(), expected="two axes", found=repr(stack),
                           help=f"pick a tile first: pto.{name}(x[0], ...)")


def _check_source(trace: KernelTrace, param: k.MemoryParam) -> None:
    if isinstance(param, k.TileParam):
        trace.check_readable(param)
    elif not param.role.reads:
        raise BufferMisuseError(f"Out parameter `{param.name}` cannot be read", here(), expected="In or InOut",
                                found=f"declared at {param.span}", help="declare it InOut to read what it holds")


def _check_inside(name: str, param: k.MemoryParam, row: s.Scalar, col: s.Scalar, rows: int, cols: int) -> None:
    """Raise T301 where the piece certainly leaves the parameter, T207 for a run-time offset into a Tile."""
    extents = param.type.shape if isinstance(param, k.TileParam) else (None, None)
    for what, offset, size, extent in (("row", row, rows, extents[0]), ("column", col, cols, extents[1])):
        if isinstance(offset, s.Const):
            if offset.value < 0 or (extent is not None and offset.value + size > extent):
                limit = "" if extent is None else f", {what} + {size} <= {extent}"
                raise ViewBoundsError(f"`pto.{name}` leaves parameter `{param.name}`", here(), expected=f"0 <= {what}{limit}",
                                      found=f"{what} {offset.value}")
        elif extent is not None:
            raise OptionValueError(f"`pto.{name}`: an offset into a Tile is known when the kernel is traced", here(),
                                   expected="whole numbers", found=print_scalar(offset),
                                   help=f"declare `{param.name}` as a Tensor to move pieces of it")


def valid_part(trace: KernelTrace, name: str, valid: object) -> _Extents:
    """Return the scalars of a pair of valid rows and columns; None for all of one, or of both.

    Raises: T209 for anything else.
    """
    if valid is None:
        return None, None
    where = f"`pto.{name}`: valid"
    if not isinstance(valid, tuple | list) or len(valid) != 2:
        raise NumberError(f"{where}: not a pair", here(), expected="(rows, columns), None for all of one",
                          found=repr(valid))
    rows, cols = valid
    return (None if rows is None else trace.whole(where, rows)), (None if cols is None else trace.whole(where, cols))


@user_call("pto.item")
def item(x: object, row: object = None, col: object = None) -> Symbolic:
    """Return the element (row, col) of a tile, or of a Tensor parameter, as a scalar: an offset, a bound, a condition, a number.

    Row and column are numbers or integer scalars; a tile of one row or column takes one index, a tile [1, 1] none. The scalar has
    the tile's dtype: whole numbers, floats and truth values. A loop that it bounds needs a limit, e.g. n.min(64).
    Raises: T213 for what is no tile, T204 for fp8, T209 for an index that is missing or no whole number, T301 for one outside.
    One that is found outside when the task runs stops the task.
    """
    trace = current_kernel("item")
    row, col = row if isinstance(row, tuple | list) and len(row) == 2 and col is None else (row, col)
    if isinstance(x, TensorParamRef):
        row, col = (Symbolic(trace.whole(f"`pto.item`: the {what}", at)) for what, at in (("row", row), ("column", col)))
        return trace.element(load(x, (row, col), shape=(1, 1)), 0, 0)
    if not is_tile(x):
        raise OperandKindError("`pto.item` reads an element of a tile or of a Tensor parameter", here(),
                               expected="a tile, or a Tensor parameter", found=repr(x),
                               help="a scalar is used as it is" if isinstance(x, Symbolic) else None)
    return trace.element(x, row, col)
