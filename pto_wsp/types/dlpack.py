"""Take arrays of other libraries in through DLPack, of bf16 and fp8 as well, which NumPy has no type of its own for.

NumPy reads such a capsule once it says that its elements are unsigned integers of their width; the array is then seen as what it is.
Source: DLPack 1.1, dlpack.h: DLTensor, DLManagedTensor, DLManagedTensorVersioned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.types.dtype import DType

_UNSIGNED = 1
_CODES: Mapping[tuple[int, int], DType] = MappingProxyType({(4, 16): DType.BF16, (10, 8): DType.FP8E4M3, (12, 8): DType.FP8E5M2})


class _DType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _DType))


class _Versioned(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor))


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


class _AsIntegers:
    """What offers an array's memory, its elements taken for unsigned integers where NumPy does not know them; `dtype`: what they are."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.dtype: DType | None = None

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: object) -> Any:
        capsule = self._array.__dlpack__(**options)
        tensor = _tensor_of(capsule)
        if tensor is not None and tensor.dtype.lanes == 1:
            self.dtype = _CODES.get((tensor.dtype.code, tensor.dtype.bits))
            if self.dtype is not None:
                tensor.dtype.code = _UNSIGNED      # the capsule is nobody else's: each call makes one
        return capsule


def _tensor_of(capsule: object) -> _Tensor | None:
    """Return the tensor in a capsule that nobody has taken, None for another one."""
    if _is_valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        return _Tensor.from_address(ctypes.addressof(whole) + _Versioned.tensor.offset)
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor"))
    return None


def from_dlpack(array: Any) -> npt.NDArray[Any]:
    """Return the elements of an array in host memory, without a copy.

    Raises: AttributeError, TypeError, BufferError or RuntimeError for an object that offers none.
    """
    offered = _AsIntegers(array)
    found: npt.NDArray[Any] = np.from_dlpack(offered)
    return found if offered.dtype is None else found.view(offered.dtype.np)
