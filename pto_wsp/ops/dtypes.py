"""Which dtypes kernels compute on, which they only move and cast, and in what they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

from pto_wsp.types.dtype import DType, Family

Array: TypeAlias = npt.NDArray[Any]

_WHOLE_FLOATS = tuple(sorted((dtype for dtype in DType if dtype.is_float and not dtype.is_half), key=lambda dtype: dtype.nbytes))
FLOATS = (*_WHOLE_FLOATS, *(dtype for dtype in DType if dtype.is_half))
INTEGERS = tuple(dtype for dtype in DType if dtype.is_integer)
UNSIGNED = tuple(dtype for dtype in INTEGERS if dtype.family is Family.UINT)
INDICES = tuple(dtype for dtype in DType if dtype.is_index)
FOLDED_FLOATS, FOLDED_INTEGERS = _WHOLE_FLOATS, INDICES     # computed on numbers when a kernel is compiled
NUMBERS = (*FLOATS, *INTEGERS)
MASKS = tuple(dtype for dtype in DType if dtype.is_bool)
BITS = (*INTEGERS, *MASKS)
COMPUTED = (*NUMBERS, *MASKS)
STORAGE = tuple(dtype for dtype in DType if dtype.is_storage)   # loaded, stored, moved and cast
ALL = (*COMPUTED, *STORAGE)
MATMUL_RESULT: Mapping[DType, DType] = {dtype: result for dtype in ALL if (result := dtype.accumulates_in) is not None}


def print_dtypes(dtypes: tuple[DType, ...]) -> str:
    """Return a list for people: `f32, f64`."""
    return ", ".join(str(dtype) for dtype in dtypes)
