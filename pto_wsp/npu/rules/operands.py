"""Choose the dtypes in which values are stored and computed on chip, and convert operands and results.

Vector units compute on f32, f16, i32 and i16. f16 and bf16 are computed in f32 and rounded once, except for ops with the same result in
f16. Other integers are stored in a wider dtype, or in one of equal width, and always hold a number in range of their own dtype; u32 is
stored with its bits in i32; masks are 0 and 1 in f32, and bytes in memory.

>>> computed_in("exp", DType.F16), carried(DType.U8)
(DType.F32, DType.I16)

Scalar operands become tiles, and operands of [R, 1], [1, C] or [1, 1] are repeated to [R, C].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.rules import converts
from pto_wsp.npu.rules.builder import Builder, ChipTile
from pto_wsp.npu.rules.formulas import wrap_integer
from pto_wsp.npu.rules.lanes import Lane, Lanes
from pto_wsp.ops.table import find

_CARRIED: Mapping[DType, DType] = {DType.F32: DType.F32, DType.F16: DType.F16, DType.BF16: DType.BF16, DType.I32: DType.I32,
                                   DType.I16: DType.I16, DType.I8: DType.I16, DType.U8: DType.I16, DType.U16: DType.I32,
                                   DType.U32: DType.I32, DType.BOOL: DType.F32}
ON_CHIP = tuple(_CARRIED)      # dtypes that kernels may compute on


def storage_dtype(dtype: DType) -> DType:
    """Return the dtype in which the chip stores values of `dtype`; `dtype` itself if the chip computes on none for it."""
    return _CARRIED.get(dtype, dtype)


def stored_as(dtype: DType) -> DType:
    """Return the dtype of a value in memory: masks are bytes there."""
    return DType.U8 if dtype.is_bool else dtype


def computed_in(op: str, dtype: DType) -> DType:
    """Return the dtype in which `op` computes on operands of `dtype`."""
    if not dtype.is_half or (dtype is DType.F16 and find(op).exact_in_f16):
        return storage_dtype(dtype)
    return DType.F32


def round_result(b: Builder, held: ChipTile, dtype: DType, *, in_range: bool) -> ChipTile:
    """Return the result of an op as the chip stores values of `dtype`: halves rounded, integers wrapped."""
    held = convert_tile(b, held, storage_dtype(dtype))
    if in_range or dtype.nbytes == held.dtype.nbytes or not dtype.is_integer:
        return held
    return _apply_formula(b, held, lambda work, x: wrap_integer(work, x, dtype))


def from_memory(b: Builder, raw: ChipTile, dtype: DType) -> ChipTile:
    """Return a loaded piece as the chip stores values of `dtype`; `raw` is stored as in memory."""
    match dtype:
        case DType.BOOL:
            return convert_tile(b, convert_tile(b, raw, DType.F16), DType.F32)
        case DType.I8 | DType.U8:
            return convert_tile(b, convert_tile(b, raw, DType.F16), DType.I16)
        case DType.U16:
            return _apply_formula(b, convert_tile(b, raw.bits(DType.I16), DType.I32), lambda work, x: wrap_integer(work, x, dtype))
        case DType.U32:
            return raw.bits(DType.I32)
        case _:
            return raw


def to_memory(b: Builder, held: ChipTile, dtype: DType) -> ChipTile:
    """Return a value of `dtype` as stored in memory."""
    match dtype:
        case DType.BOOL:
            return convert_tile(b, convert_tile(b, held, DType.F16), DType.U8)
        case DType.I8 | DType.U8:
            return convert_tile(b, convert_tile(b, held, DType.F16), dtype)
        case DType.U16:
            return convert_tile(b, _apply_formula(b, held, lambda work, x: wrap_integer(work, x, DType.I16)), DType.I16).bits(DType.U16)
        case DType.U32:
            return held.bits(DType.U32)
        case _:
            return held


def convert_tile(b: Builder, held: ChipTile, dtype: DType) -> ChipTile:
    """Return a value in another dtype; narrowing rounds to even. A pair without an instruction goes through f32."""
    if held.dtype is dtype:
        return held
    if not converts(held.dtype, dtype, b.arch.family):
        held = convert_tile(b, held, DType.F32)
    out = b.like(held, f"{held.name}_{dtype}", dtype)
    b.emit("TCVT", b.flat(out), b.flat(held), tp.Word(f"RoundMode::{'CAST_NONE' if _exact(held.dtype, dtype) else 'CAST_RINT'}"))
    return out


def _exact(source: DType, target: DType) -> bool:
    """Return whether `target` represents every number of `source`."""
    return (source, target) in ((DType.F16, DType.F32), (DType.BF16, DType.F32), (DType.I16, DType.F32), (DType.I8, DType.F16),
                                (DType.U8, DType.F16))


def _apply_formula(b: Builder, held: ChipTile, work_on: Callable[[Lanes, Lane], Lane]) -> ChipTile:
    """Return the result of a formula on the elements of a value, with the same valid part."""
    work = Lanes(b, held.rows, held.cols, held.valid_rows, held.valid_cols)
    return work.finish(work_on(work, work.given(held)), held.name)


def number_operand(b: Builder, operand: k.ScalarOperand) -> k.ScalarOperand | None:
    """Return a number rounded to its dtype, bf16 as f32; None for a run-time half, which only the device can round."""
    value, dtype = b.scalar(operand.value), operand.dtype
    if isinstance(value, Const):
        rounded = np.asarray(value.value).astype(dtype.np)
        rounded = rounded.astype(np.int32) if dtype is DType.U32 else rounded      # the same bits, as on chip
        plain = float(rounded) if dtype.is_float else bool(rounded) if dtype.is_bool else int(rounded)
        return k.ScalarOperand(Const(plain), DType.F32 if dtype is DType.BF16 else dtype)
    return None if dtype.is_half else k.ScalarOperand(value, dtype)


def as_tile(b: Builder, operand: k.Operand, dtype: DType) -> ChipTile:
    """Return an operand as a tile in `dtype`; a number becomes [1, 1]."""
    if isinstance(operand, k.Value):
        held = b.held(operand)
        return convert_tile(b, held if b.rows is None else held.part(b.valid_rows(held.rows), held.valid_cols), dtype)
    number = number_operand(b, operand)
    if number is not None:
        return fill_tile(b, 1, 1, dtype, number)
    exact = fill_tile(b, 1, 1, DType.F32, k.ScalarOperand(operand.value, DType.F32))
    return convert_tile(b, convert_tile(b, exact, operand.dtype), dtype)


def fill_tile(b: Builder, rows: int, cols: int, dtype: DType, number: k.ScalarOperand, name: str = "number") -> ChipTile:
    """Return a tile with one number in every element."""
    out = b.hold(rows, cols, dtype, name)
    b.emit("TEXPANDS", b.flat(out), b.number(number.value, dtype))
    return out



def expand_tile(b: Builder, held: ChipTile, rows: int, cols: int) -> ChipTile:
    """Return a tile repeated to [rows, cols]; the tile itself if it has that shape."""
    if (held.rows, held.cols) == (rows, cols):
        return held
    out = b.hold(rows, cols, held.dtype, f"{held.name}_all")
    if held.cols == 1 and held.rows == rows:
        b.emit("TROWEXPAND", b.flat(out), b.column(held))
    elif held.rows == 1 and held.cols == cols:
        repeat_row(b, out, held)
    elif 1 in (rows, cols):   # [1, 1] to one row or column: the same bytes
        b.emit("TROWEXPAND", b.flat(out), b.column(held))
    else:
        return expand_tile(b, expand_tile(b, held, rows, 1), rows, cols)
    return out


def repeat_row(b: Builder, out: ChipTile, row: ChipTile) -> None:
    """Fill every row of `out` with `row`; a column takes the row's single element."""
    if out.is_column:
        b.emit("TROWEXPAND", b.flat(out), b.column(row))
    else:
        b.emit("TCOLEXPAND", b.flat(out), b.flat(row))


def on_chip(operand: k.Operand) -> DType:
    """Return the dtype in which the chip stores an operand."""
    return storage_dtype(operand.type.dtype if isinstance(operand, k.Value) else operand.dtype)
