"""Which dtypes kernels compute on, which they only move and cast, and in what they compute."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

from pto_wsp.types.dtype import DType, Family

Array: TypeAlias = npt.NDArray[Any]

HALVES = (DType.F16, DType.BF16)
FLOATS = (DType.F32, DType.F64, *HALVES)
INTEGERS = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U16, DType.U32, DType.U64)
UNSIGNED = tuple(dtype for dtype in INTEGERS if dtype.family is Family.UINT)
NUMBERS = (*FLOATS, *INTEGERS)
BITS = (*INTEGERS, DType.BOOL)
COMPUTED = (*NUMBERS, DType.BOOL)
FOLDED_FLOATS, FOLDED_INTEGERS = (DType.F32, DType.F64), (DType.I32, DType.I64)   # computed on numbers when a kernel is compiled
STORAGE = (DType.FP8E4M3, DType.FP8E5M2)   # loaded, stored, moved and cast
ALL = (*COMPUTED, *STORAGE)

MATMUL_RESULT = {DType.F32: DType.F32, DType.F64: DType.F64, DType.F16: DType.F32, DType.BF16: DType.F32,
                 DType.I8: DType.I32, DType.I32: DType.I32, DType.I64: DType.I64}


def computed_in(dtype: DType) -> DType:
    """Return the dtype that operations on `dtype` compute in: f32 for halves, which round their result once, else itself.

    >>> computed_in(DType.BF16)
    DType.F32
    """
    return DType.F32 if dtype in HALVES else dtype


def print_dtypes(dtypes: tuple[DType, ...]) -> str:
    """Return a list for people: `f32, f64`."""
    return ", ".join(str(dtype) for dtype in dtypes)
