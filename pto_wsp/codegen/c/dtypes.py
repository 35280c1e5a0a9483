"""How dtypes and constants are spelled in C: in memory, and in the local variables that are computed with.

A half lies in memory as its bits and in a local as a float that holds one of its values; fp8 is its bits in both.
"""

from __future__ import annotations

import math

import numpy as np

from pto_wsp.codegen.c import syntax as c
from pto_wsp.ops.rounding import convert
from pto_wsp.types.dtype import DType


def memory_type(dtype: DType) -> str:
    """Return the C type of one element in memory; halves and fp8 are their bits."""
    return dtype.c_type


def local_type(dtype: DType) -> str:
    """Return the C type of an element in a local variable: masks are _Bool, which vectorises as a mask, halves are floats."""
    return "_Bool" if dtype.is_bool else "float" if dtype.is_half else dtype.c_type


def literal(value: float | int | bool, dtype: DType) -> c.Expr:
    """Return a constant of a local variable, as NumPy converts `value` to `dtype`.

    >>> literal(1, DType.F32)
    Float(value=1.0, single=True)
    """
    if dtype.is_storage:
        return memory_literal(value, dtype)
    if dtype.is_half:
        return c.Float(float(_held(value, dtype)), single=True)
    if dtype.is_float:
        return c.Float(float(value), single=not dtype.is_double)
    if dtype.is_bool:
        return c.Int(int(bool(value)))
    number = int(np.asarray(int(value)).astype(dtype.np))
    return c.Int(number, "" if -(1 << 31) <= number < 1 << 31 else "LL" if number < 1 << 63 else "ULL")


def memory_literal(value: float | int | bool, dtype: DType) -> c.Expr:
    """Return a constant as it lies in memory: halves and fp8 as their bits."""
    if dtype.is_half or dtype.is_storage:
        return c.Int(int(_held(value, dtype).view(np.dtype(f"u{dtype.nbytes}"))))
    return literal(value, dtype)


def lowest(dtype: DType) -> c.Expr:
    """Return -inf, or the smallest integer."""
    return c.Float(-math.inf, not dtype.is_double) if dtype.is_float else literal(int(np.iinfo(dtype.np).min), dtype)


def highest(dtype: DType) -> c.Expr:
    """Return inf, or the largest integer."""
    return c.Float(math.inf, not dtype.is_double) if dtype.is_float else literal(int(np.iinfo(dtype.np).max), dtype)


def loaded(element: c.Expr, dtype: DType) -> c.Expr:
    """Return an element in memory as a local variable holds it."""
    return c.Call(f"pto_widen_{dtype}", (element,)) if dtype.is_half else element


def stored(value: c.Expr, dtype: DType) -> c.Expr:
    """Return a local value as it lies in memory."""
    if isinstance(value, c.Call) and value.function == f"pto_widen_{dtype}" and dtype.is_half:
        return value.args[0]
    if isinstance(value, c.Float) and dtype.is_half:
        return memory_literal(value.value, dtype)
    return c.Call(f"pto_narrow_{dtype}", (value,)) if dtype.is_half else value


def rounded(value: c.Expr, dtype: DType) -> c.Expr:
    """Return what was computed for `dtype` as one of its values."""
    return c.Call(f"pto_round_{dtype}", (value,)) if dtype.is_half else value


def _held(value: float | int | bool, dtype: DType) -> np.generic:
    held: np.generic = convert(np.array([float(value)]), dtype)[0]
    return held
