"""How dtypes and constants are spelled in C."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pto_wsp.codegen.c import syntax as c
from pto_wsp.errors import unreachable
from pto_wsp.ops.dtypes import ALL
from pto_wsp.types.dtype import DType

_C_TYPES: Mapping[DType, str] = {
    DType.F64: "double", DType.F32: "float", DType.F16: "uint16_t", DType.BF16: "uint16_t",
    DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t", DType.I64: "int64_t",
    DType.U8: "uint8_t", DType.U16: "uint16_t", DType.U32: "uint32_t", DType.U64: "uint64_t",
    DType.BOOL: "uint8_t", DType.FP8E4M3: "uint8_t", DType.FP8E5M2: "uint8_t",
}


def c_type(dtype: DType) -> str:
    """Return the C type of one element; halves and fp8 are their bits."""
    return _C_TYPES[dtype]


def memory_type(dtype: DType) -> str:
    """Return the C type of an element in memory, of a dtype that kernels compute on."""
    if dtype not in ALL:
        unreachable(f"{dtype} in a kernel")
    return c_type(dtype)


def local_type(dtype: DType) -> str:
    """Return the C type of an element in a local variable: masks are _Bool, which vectorises as a mask."""
    return "_Bool" if dtype is DType.BOOL else memory_type(dtype)


def literal(value: float | int | bool, dtype: DType) -> c.Expr:
    """Return a constant as NumPy converts `value` to `dtype`.

    >>> literal(1, DType.F32)
    Float(value=1.0, single=True)
    """
    if dtype.is_float:
        return c.Float(float(value), single=dtype is DType.F32)
    if dtype is DType.BOOL:
        return c.Int(int(bool(value)))
    number = int(np.asarray(int(value)).astype(dtype.np))
    return c.Int(number, "" if -(1 << 31) <= number < 1 << 31 else "LL")


def lowest(dtype: DType) -> c.Expr:
    """Return -inf, or the smallest integer."""
    return c.Float(-math.inf, dtype is DType.F32) if dtype.is_float else literal(int(np.iinfo(dtype.np).min), dtype)


def highest(dtype: DType) -> c.Expr:
    """Return inf, or the largest integer."""
    return c.Float(math.inf, dtype is DType.F32) if dtype.is_float else literal(int(np.iinfo(dtype.np).max), dtype)
