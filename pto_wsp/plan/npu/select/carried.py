"""In which dtype a value lies on chip, in which it is computed, and the conversions between them and memory.

Vector units compute on f32, f16, i32 and i16. Halves are computed in f32 and rounded once, but for ops whose f16 form gives the same.

>>> computed_in("exp", DType.F16)
DType.F32
"""

from __future__ import annotations

from pto_wsp.expr import tile_program as tp
from pto_wsp.ops.dtypes import HALVES
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.types.dtype import DType

_EXACT_IN_F16 = frozenset({"add", "sub", "mul", "div", "maximum", "minimum", "abs", "neg", "relu"})


def carried(dtype: DType) -> DType:
    """Return the dtype that values of `dtype` lie in on chip."""
    return dtype


def stored_as(dtype: DType) -> DType:
    """Return the dtype that a piece in memory is moved as: masks are bytes there."""
    return DType.U8 if dtype is DType.BOOL else dtype


def computed_in(op: str, dtype: DType) -> DType:
    """Return the dtype that `op` is computed in on operands of `dtype`."""
    if dtype not in HALVES or (dtype is DType.F16 and op in _EXACT_IN_F16):
        return dtype
    return DType.F32


def from_memory(b: Builder, raw: Held, dtype: DType) -> Held:
    """Return a loaded piece as values of `dtype` lie on chip; `raw` is held as it is stored."""
    return raw


def to_memory(b: Builder, held: Held, dtype: DType) -> Held:
    """Return a value of `dtype` held as it is stored."""
    return held


def converted(b: Builder, held: Held, dtype: DType) -> Held:
    """Return a value in another dtype: wider ones are exact, narrower ones round to even."""
    if held.dtype is dtype:
        return held
    out = b.like(held, f"{held.name}_{dtype}", dtype)
    mode = "CAST_NONE" if dtype.nbytes > held.dtype.nbytes else "CAST_RINT"
    b.emit("TCVT", b.flat(out), b.flat(held), tp.Word(f"RoundMode::{mode}"))
    return out
