"""The C type of each dtype, as generated code holds its elements in memory."""

from __future__ import annotations

from collections.abc import Mapping

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
