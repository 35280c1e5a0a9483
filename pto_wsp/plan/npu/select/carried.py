"""In which dtype a value lies on chip, in which it is computed, and the conversions between them and memory.

Vector units compute on f32, f16, i32 and i16. Halves are computed in f32 and rounded once, but for ops whose f16 form gives the same.
Other integers lie in a wider one, or the one of their width, and are always within the range of their own dtype; u32 lies in i32 by its
bits; masks are 0 and 1 in f32, and bytes in memory.

>>> computed_in("exp", DType.F16), carried(DType.U8)
(DType.F32, DType.I16)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.arch.isa.rules import converts
from pto_wsp.expr import tile_program as tp
from pto_wsp.ops.table import find
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas.bits import wrapped
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.types.dtype import DType

_CARRIED: Mapping[DType, DType] = {DType.F32: DType.F32, DType.F16: DType.F16, DType.BF16: DType.BF16, DType.I32: DType.I32,
                                   DType.I16: DType.I16, DType.I8: DType.I16, DType.U8: DType.I16, DType.U16: DType.I32,
                                   DType.U32: DType.I32, DType.BOOL: DType.F32}
ON_CHIP = tuple(_CARRIED)      # what kernels may compute on


def carried(dtype: DType) -> DType:
    """Return the dtype that values of `dtype` lie in on chip; of one that none lie in, itself."""
    return _CARRIED.get(dtype, dtype)


def stored_as(dtype: DType) -> DType:
    """Return the dtype that a piece in memory is moved as: masks are bytes there."""
    return DType.U8 if dtype.is_bool else dtype


def computed_in(op: str, dtype: DType) -> DType:
    """Return the dtype that `op` is computed in on operands of `dtype`."""
    if not dtype.is_half or (dtype is DType.F16 and find(op).exact_in_f16):
        return carried(dtype)
    return DType.F32


def settled(b: Builder, held: Held, dtype: DType, *, in_range: bool) -> Held:
    """Return a result as values of `dtype` lie on chip: halves rounded, integers wrapped unless they are `in_range` of it."""
    held = converted(b, held, carried(dtype))
    if in_range or dtype.nbytes == held.dtype.nbytes or not dtype.is_integer:
        return held
    return _worked(b, held, lambda work, x: wrapped(work, x, dtype))


def from_memory(b: Builder, raw: Held, dtype: DType) -> Held:
    """Return a loaded piece as values of `dtype` lie on chip; `raw` is held as it is stored."""
    match dtype:
        case DType.BOOL:
            return converted(b, converted(b, raw, DType.F16), DType.F32)
        case DType.I8 | DType.U8:
            return converted(b, converted(b, raw, DType.F16), DType.I16)
        case DType.U16:
            return _worked(b, converted(b, raw.bits(DType.I16), DType.I32), lambda work, x: wrapped(work, x, dtype))
        case DType.U32:
            return raw.bits(DType.I32)
        case _:
            return raw


def to_memory(b: Builder, held: Held, dtype: DType) -> Held:
    """Return a value of `dtype` held as it is stored."""
    match dtype:
        case DType.BOOL:
            return converted(b, converted(b, held, DType.F16), DType.U8)
        case DType.I8 | DType.U8:
            return converted(b, converted(b, held, DType.F16), dtype)
        case DType.U16:
            return converted(b, _worked(b, held, lambda work, x: wrapped(work, x, DType.I16)), DType.I16).bits(DType.U16)
        case DType.U32:
            return held.bits(DType.U32)
        case _:
            return held


def converted(b: Builder, held: Held, dtype: DType) -> Held:
    """Return a value in another dtype: wider ones are exact, narrower ones round to even. Where no instruction is, through f32."""
    if held.dtype is dtype:
        return held
    if not converts(held.dtype, dtype, b.arch.family):
        held = converted(b, held, DType.F32)
    out = b.like(held, f"{held.name}_{dtype}", dtype)
    b.emit("TCVT", b.flat(out), b.flat(held), tp.Word(f"RoundMode::{'CAST_NONE' if _exact(held.dtype, dtype) else 'CAST_RINT'}"))
    return out


def _exact(source: DType, target: DType) -> bool:
    """Tell whether every number of `source` is one of `target`."""
    return (source, target) in ((DType.F16, DType.F32), (DType.BF16, DType.F32), (DType.I16, DType.F32), (DType.I8, DType.F16),
                                (DType.U8, DType.F16))


def _worked(b: Builder, held: Held, work_on: Callable[[Lanes, Lane], Lane]) -> Held:
    """Return what is made of all elements of a value, of which the same part is valid."""
    work = Lanes(b, held.rows, held.cols, held.valid_rows, held.valid_cols)
    return work.finish(work_on(work, work.given(held)), held.name)
