"""Operands of an op as it takes them: scalars as tiles, and [R, 1], [1, C] and [1, 1] repeated to [R, C]."""

from __future__ import annotations

import numpy as np

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried, converted
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const


def number_of(b: Builder, operand: k.ScalarOperand) -> k.ScalarOperand | None:
    """Return a number rounded to its dtype, as an f32 where that is a half; None where only the device can round it."""
    value, dtype = b.scalar(operand.value), operand.dtype
    if isinstance(value, Const):
        rounded = np.asarray(value.value).astype(dtype.np)
        rounded = rounded.astype(np.int32) if dtype is DType.U32 else rounded      # the same bits, as on chip
        plain = float(rounded) if dtype.is_float else bool(rounded) if dtype.is_bool else int(rounded)
        return k.ScalarOperand(Const(plain), DType.F32 if dtype is DType.BF16 else dtype)
    return None if dtype.is_half else k.ScalarOperand(value, dtype)


def as_tile(b: Builder, operand: k.Operand, dtype: DType) -> Held:
    """Return an operand as a tile in `dtype`, a number as [1, 1]."""
    if isinstance(operand, k.Value):
        held = b.held(operand)
        return converted(b, held if b.rows is None else held.part(b.valid_rows(held.rows), held.valid_cols), dtype)
    number = number_of(b, operand)
    if number is not None:
        return filled(b, 1, 1, dtype, number)
    exact = filled(b, 1, 1, DType.F32, k.ScalarOperand(operand.value, DType.F32))
    return converted(b, converted(b, exact, operand.dtype), dtype)


def filled(b: Builder, rows: int, cols: int, dtype: DType, number: k.ScalarOperand, name: str = "number") -> Held:
    """Return a tile with one number in every element."""
    out = b.hold(rows, cols, dtype, name)
    b.emit("TEXPANDS", b.flat(out), b.number(number.value, dtype))
    return out


def line(held: Held) -> Held:
    """Return a value of one row or one column as one of one column."""
    return held if held.cols == 1 else held.turned()


def expanded(b: Builder, held: Held, rows: int, cols: int) -> Held:
    """Return a tile repeated to [rows, cols]; itself where it has that shape."""
    if (held.rows, held.cols) == (rows, cols):
        return held
    out = b.hold(rows, cols, held.dtype, f"{held.name}_all")
    if held.cols == 1 and held.rows == rows:
        b.emit("TROWEXPAND", b.flat(out), b.column(held))
    elif held.rows == 1 and held.cols == cols:
        repeat_row(b, out, held)
    elif 1 in (rows, cols):   # [1, 1] to one row or column, which are the same bytes
        b.emit("TROWEXPAND", b.flat(out), b.column(held))
    else:
        return expanded(b, expanded(b, held, rows, 1), rows, cols)
    return out


def repeat_row(b: Builder, out: Held, row: Held) -> None:
    """Fill every row of `out` with one row; a column takes it as a number."""
    if out.is_column:
        b.emit("TROWEXPAND", b.flat(out), b.column(row))
    else:
        b.emit("TCOLEXPAND", b.flat(out), b.flat(row))


def on_chip(operand: k.Operand) -> DType:
    """Return the dtype in which an operand lies on chip."""
    return carried(operand.type.dtype if isinstance(operand, k.Value) else operand.dtype)
