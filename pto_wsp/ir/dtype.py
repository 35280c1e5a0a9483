"""Define the element types of tensors, tiles and scalars.

A dtype is one record, at the end of this file, with traits that derive from it. The rest of the package uses the traits and names no
dtype.

>>> DType.F32.nbytes, DType.from_numpy("int32")
(4, DType.I32)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.calls import NamedMembers, user_calls
from pto_wsp.errors import DTypeNameError, InternalError
from pto_wsp.source import here
from pto_wsp.values import dataclass

DTypeLike: TypeAlias = "DType | npt.DTypeLike"     # what `DType.of` takes


class Family(Enum):
    """The kind of numbers of a dtype."""

    FLOAT = "float"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"
    STORAGE = "storage"   # moved and cast, never computed on


@dataclass(frozen=True, slots=True)
class Format:
    """A float format: significant digits, exponent of the smallest normal number, largest finite number, and whether it has infinities.

    A format without infinities has NaN for every larger number.
    """

    digits: int
    low: int
    largest: float
    infinite: bool = True


@user_calls()
class DType(Enum, metaclass=NamedMembers):
    """An element type. The value is its short name in printed types."""

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
        """Bytes per element."""
        return _RECORDS[self].nbytes

    @property
    def family(self) -> Family:
        """The kind of numbers of the dtype."""
        return _RECORDS[self].family

    @property
    def is_float(self) -> bool:
        """True for f64, f32, f16 and bf16."""
        return self.family is Family.FLOAT

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.family in (Family.INT, Family.UINT)

    @property
    def is_bool(self) -> bool:
        """True for masks, whose elements are 0 and 1."""
        return self.family is Family.BOOL

    @property
    def is_storage(self) -> bool:
        """True for fp8, which is loaded, stored, moved and cast, and never computed on."""
        return self.family is Family.STORAGE

    @property
    def is_real(self) -> bool:
        """True for dtypes of numbers with a fraction: floats and fp8."""
        return self.family in (Family.FLOAT, Family.STORAGE)

    @property
    def is_half(self) -> bool:
        """True for f16 and bf16, which lie in memory as their bits and are computed in f32."""
        return self.family is Family.FLOAT and self.nbytes == 2

    @property
    def is_double(self) -> bool:
        """True for f64."""
        return self.family is Family.FLOAT and self.nbytes == 8

    @property
    def exceeds_i64(self) -> bool:
        """True for u64, of which i64, in which scalars are computed, does not hold every number."""
        return self.family is Family.UINT and self.nbytes == 8

    @property
    def is_foreign(self) -> bool:
        """True for dtypes that NumPy has from ml_dtypes: bf16 and fp8."""
        return _RECORDS[self].foreign

    @property
    def dlpack_code(self) -> int | None:
        """DLPack's code for the kind of a dtype that NumPy does not exchange; None for the dtypes that it does."""
        return _RECORDS[self].dlpack_code

    @property
    def is_index(self) -> bool:
        """True for the dtypes that indices have: i32 and i64."""
        return self.family is Family.INT and self.nbytes >= 4

    @property
    def format(self) -> Format:
        """The float format of a dtype of which `is_real` holds."""
        found = _RECORDS[self].format
        if found is None:
            raise InternalError(f"{self} has no float format")
        return found

    @property
    def c_type(self) -> str:
        """The C type of an element in memory; halves and fp8 are their bits."""
        return _RECORDS[self].c_type

    @property
    def computed_in(self) -> DType:
        """The dtype that operations compute in: f32 for halves, which round their result once, else itself."""
        return DType.F32 if self.is_half else self

    @property
    def accumulates_in(self) -> DType | None:
        """The dtype that products of matrices add up in and give, None where there are no such products."""
        return _RECORDS[self].accumulates_in

    def holds(self, value: int) -> bool:
        """Tell whether an integer is in range; always True for a float dtype."""
        if self.family not in (Family.INT, Family.UINT):
            return value == value + 0      # what is no number has no sum
        bits = 8 * self.nbytes
        return -(1 << bits - 1) <= value < 1 << bits - 1 if self.family is Family.INT else 0 <= value < 1 << bits

    @staticmethod
    def of(value: object) -> DType | None:
        """Return the member that `value` names, None for any other value.

        `value`: a member, its name or NumPy's ("f32", "float32"), a NumPy dtype or scalar type, or a dtype of torch or JAX. Python's `int`
        and `float` name none: NumPy and torch disagree on their width.

        >>> DType.of("bfloat16"), DType.of(np.int8), DType.of(float)
        (DType.BF16, DType.I8, None)
        """
        if isinstance(value, DType):
            return value
        if isinstance(value, str):
            name = value.removeprefix("torch.")
        elif type(value).__module__ == "torch":
            name = str(value).removeprefix("torch.")
        elif isinstance(value, np.dtype):
            name = value.name if value.isnative else ""
        elif isinstance(value, type) and issubclass(value, np.generic):
            name = np.dtype(value).name
        else:       # jax.numpy.float32 is no type, and has its dtype
            inner = getattr(value, "dtype", None) if callable(value) else None
            name = inner.name if isinstance(inner, np.dtype) else ""
        return next((member for member in DType if name in (member.value, _numpy_name(member))), None)

    @staticmethod
    def from_numpy(dtype: npt.DTypeLike) -> DType:
        """Return the member for a NumPy dtype, or a value that NumPy converts to one.

        Raises: D102 if there is no member (complex, structured, other byte orders).
        """
        try:
            found = np.dtype(dtype)
        except TypeError:
            raise DTypeNameError(f"{dtype!r} is not a dtype", here(), expected=_names(), found=repr(dtype)) from None
        for member in DType:
            if _numpy_name(member) == found.name:
                if found.isnative:
                    return member
                raise DTypeNameError(f"{found} is of the other byte order", here(), expected=f"{member}, in this machine's order",
                                     found=str(found), help=f"array.astype(np.{found.name}) makes a copy in this machine's order")
        raise DTypeNameError(f"no DType for NumPy's {found}", here(), expected=_names(), found=str(found),
                             help="convert the array first, e.g. array.astype(np.float32)")

    def __eq__(self, other: object) -> bool:
        """Tell whether `other` is this member, or a dtype of NumPy, torch or JAX that names it, or such a name: x.dtype == np.float32."""
        return self is other or (not isinstance(other, DType) and other is not None and DType.of(other) is self)

    __hash__ = object.__hash__      # types are hashed with every expression

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class _DTypeRow:
    """What there is to know of a dtype. `numpy`: NumPy's name of it, or that of ml_dtypes: `foreign`; the rest as in `DType`."""

    nbytes: int
    family: Family
    numpy: str
    c_type: str
    format: Format | None = None
    accumulates_in: DType | None = None
    foreign: bool = False
    dlpack_code: int | None = None


_RECORDS: Mapping[DType, _DTypeRow] = {
    DType.F64: _DTypeRow(8, Family.FLOAT, "float64", "double", Format(53, -1022, float.fromhex("0x1.fffffffffffffp1023")), DType.F64),
    DType.F32: _DTypeRow(4, Family.FLOAT, "float32", "float", Format(24, -126, float.fromhex("0x1.fffffep127")), DType.F32),
    DType.F16: _DTypeRow(2, Family.FLOAT, "float16", "uint16_t", Format(11, -14, 65504.0), DType.F32),
    DType.BF16: _DTypeRow(2, Family.FLOAT, "bfloat16", "uint16_t", Format(8, -126, float.fromhex("0x1.fep127")), DType.F32, foreign=True,
                          dlpack_code=4),
    DType.I8: _DTypeRow(1, Family.INT, "int8", "int8_t", accumulates_in=DType.I32),
    DType.I16: _DTypeRow(2, Family.INT, "int16", "int16_t"),
    DType.I32: _DTypeRow(4, Family.INT, "int32", "int32_t", accumulates_in=DType.I32),
    DType.I64: _DTypeRow(8, Family.INT, "int64", "int64_t", accumulates_in=DType.I64),
    DType.U8: _DTypeRow(1, Family.UINT, "uint8", "uint8_t"),
    DType.U16: _DTypeRow(2, Family.UINT, "uint16", "uint16_t"),
    DType.U32: _DTypeRow(4, Family.UINT, "uint32", "uint32_t"),
    DType.U64: _DTypeRow(8, Family.UINT, "uint64", "uint64_t"),
    DType.BOOL: _DTypeRow(1, Family.BOOL, "bool", "uint8_t"),
    DType.FP8E4M3: _DTypeRow(1, Family.STORAGE, "float8_e4m3fn", "uint8_t", Format(4, -6, 448.0, infinite=False), foreign=True,
                             dlpack_code=10),
    DType.FP8E5M2: _DTypeRow(1, Family.STORAGE, "float8_e5m2", "uint8_t", Format(3, -14, 57344.0), foreign=True, dlpack_code=12),
}


def _numpy_name(member: DType) -> str:
    return _RECORDS[member].numpy


def _numpy_dtype(member: DType) -> np.dtype[Any]:
    name = _numpy_name(member)
    if not member.is_foreign:
        return np.dtype(name)
    import ml_dtypes  # loaded only by programs with these dtypes

    return np.dtype(getattr(ml_dtypes, name))  # type: ignore[no-any-return]


def _names() -> str:
    return "one of " + ", ".join(str(member) for member in DType)
