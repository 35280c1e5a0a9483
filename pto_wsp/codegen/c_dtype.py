"""How dtypes and constants are spelled in C."""

from __future__ import annotations

import math

import numpy as np

from pto_wsp.codegen import c_ast as c
from pto_wsp.codegen.c_types import c_type
from pto_wsp.errors import unreachable
from pto_wsp.ops.dtypes import ALL
from pto_wsp.types.dtype import DType


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
