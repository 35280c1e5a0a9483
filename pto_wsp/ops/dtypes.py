"""Which dtypes kernels compute on."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

from pto_wsp.types.dtype import DType

Array: TypeAlias = npt.NDArray[Any]

FLOATS = (DType.F32, DType.F64)
INTEGERS = (DType.I8, DType.I32, DType.I64, DType.U8)
NUMBERS = (*FLOATS, *INTEGERS)
BITS = (*INTEGERS, DType.BOOL)
ALL = (*NUMBERS, DType.BOOL)

MATMUL_RESULT = {DType.F32: DType.F32, DType.F64: DType.F64, DType.I8: DType.I32, DType.I32: DType.I32, DType.I64: DType.I64}


def print_dtypes(dtypes: tuple[DType, ...]) -> str:
    """Return a list for people: `f32, f64`."""
    return ", ".join(str(dtype) for dtype in dtypes)
