"""Element types: what tensors, tiles and scalars hold.

>>> DType.F32.nbytes, DType.from_numpy("int32")
(4, DType.I32)
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.errors import DTypeNameError
from pto_wsp.source import here


class Family(Enum):
    """What kind of numbers a dtype holds."""

    FLOAT = "float"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"
    STORAGE = "storage"   # moved and cast, never computed on


class DType(Enum):
    """An element type. The value is its short name, as types print it."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    BOOL = "bool"
    FP8E4M3 = "fp8e4m3"
    FP8E5M2 = "fp8e5m2"

    @property
    def np(self) -> np.dtype[Any]:
        """The NumPy dtype; bf16 and fp8 come from ml_dtypes."""
        return _numpy_dtype(self)

    @property
    def nbytes(self) -> int:
        """Bytes an element."""
        return _NBYTES[self]

    @property
    def family(self) -> Family:
        """What kind of numbers it holds."""
        return _FAMILY[self]

    @property
    def is_float(self) -> bool:
        """True for f64, f32, f16 and bf16."""
        return self.family is Family.FLOAT

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.family in (Family.INT, Family.UINT)

    def holds(self, value: int) -> bool:
        """Tell whether a whole number fits: always for a float dtype."""
        if self.family not in (Family.INT, Family.UINT):
            return True
        bits = 8 * self.nbytes
        return -(1 << bits - 1) <= value < 1 << bits - 1 if self.family is Family.INT else 0 <= value < 1 << bits

    @staticmethod
    def from_numpy(dtype: npt.DTypeLike) -> DType:
        """Return the member for a NumPy dtype, or anything that NumPy reads as one.

        Raises: D102 when no member has it (complex, structured, other byte orders).
        """
        try:
            found = np.dtype(dtype)
        except TypeError:
            raise DTypeNameError(f"{dtype!r} is not a dtype", here(), expected=_names(), found=repr(dtype)) from None
        if found.isnative:
            for member in DType:
                if _numpy_name(member) == found.name:
                    return member
        raise DTypeNameError(f"no DType for NumPy's {found}", here(), expected=_names(), found=str(found),
                             help="convert the array first, e.g. array.astype(np.float32)")

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    def __str__(self) -> str:
        return str(self.value)


_NBYTES = {
    DType.F64: 8, DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I8: 1, DType.I16: 2, DType.I32: 4, DType.I64: 8,
    DType.U8: 1, DType.U16: 2, DType.U32: 4, DType.U64: 8, DType.BOOL: 1, DType.FP8E4M3: 1, DType.FP8E5M2: 1,
}
_FAMILY = {
    **{member: Family.FLOAT for member in (DType.F64, DType.F32, DType.F16, DType.BF16)},
    **{member: Family.INT for member in (DType.I8, DType.I16, DType.I32, DType.I64)},
    **{member: Family.UINT for member in (DType.U8, DType.U16, DType.U32, DType.U64)},
    DType.BOOL: Family.BOOL, DType.FP8E4M3: Family.STORAGE, DType.FP8E5M2: Family.STORAGE,
}
_NUMPY_NAME = {
    DType.F64: "float64", DType.F32: "float32", DType.F16: "float16", DType.BF16: "bfloat16", DType.I8: "int8",
    DType.I16: "int16", DType.I32: "int32", DType.I64: "int64", DType.U8: "uint8", DType.U16: "uint16",
    DType.U32: "uint32", DType.U64: "uint64", DType.BOOL: "bool", DType.FP8E4M3: "float8_e4m3fn",
    DType.FP8E5M2: "float8_e5m2",
}


def _numpy_name(member: DType) -> str:
    return _NUMPY_NAME[member]


def _numpy_dtype(member: DType) -> np.dtype[Any]:
    name = _NUMPY_NAME[member]
    if member not in (DType.BF16, DType.FP8E4M3, DType.FP8E5M2):
        return np.dtype(name)
    import ml_dtypes  # a library that programs without these dtypes do not load

    return np.dtype(getattr(ml_dtypes, name))  # type: ignore[no-any-return]


def _names() -> str:
    return "one of " + ", ".join(str(member) for member in DType)
