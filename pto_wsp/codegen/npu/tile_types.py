"""How tiles, global tensors and dtypes are spelled in C++ for the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from pto_wsp.errors import InternalError
from pto_wsp.expr.tile_program import Form, Tile
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const

_TYPES: Mapping[DType, str] = {
    DType.F32: "float", DType.F16: "half", DType.BF16: "bfloat16_t", DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t",
    DType.I64: "int64_t", DType.U8: "uint8_t", DType.U16: "uint16_t", DType.U32: "uint32_t", DType.U64: "uint64_t", DType.BOOL: "uint8_t",
}
BF16_TYPE = _TYPES[DType.BF16]
_FRACTAL = 512   # bytes of a block of L1


def device_type(dtype: DType) -> str:
    """Return the C++ type of an element on the device."""
    if dtype not in _TYPES:
        raise InternalError(f"{dtype} has no type on the device", "selection lets none through")
    return _TYPES[dtype]


def abi_defines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the macros that a kernel file with these lines defines before it includes the ABI header."""
    return ("PTO_WSP_KERNEL", *(("PTO_WSP_BF16",) if any(BF16_TYPE in line for line in lines) else ()))


def is_dynamic(tile: Tile) -> bool:
    """Tell whether the valid part of a tile is known only at run time."""
    return not (isinstance(tile.valid_rows, Const) and isinstance(tile.valid_cols, Const))


def tile_type(tile: Tile) -> str:
    """Return the C++ type of a tile. Both valid extents are dynamic, or none: the form that is known to work everywhere."""
    rows, cols = ("-1", "-1") if is_dynamic(tile) else (str(int(_const(tile.valid_rows))), str(int(_const(tile.valid_cols))))
    element, storage, valid = device_type(tile.dtype), f"{tile.rows}, {tile.cols}", f"{rows}, {cols}"
    match tile.form:
        case Form.ROWS:
            return f"Tile<TileType::Vec, {element}, {storage}, BLayout::RowMajor, {valid}>"
        case Form.COLUMN:
            return f"Tile<TileType::Vec, {element}, {storage}, BLayout::ColMajor, {valid}>"
        case Form.NZ:
            return f"Tile<TileType::Mat, {element}, {storage}, BLayout::ColMajor, {valid}, SLayout::RowMajor, {_FRACTAL}>"
        case Form.ZN:
            return f"Tile<TileType::Mat, {element}, {storage}, BLayout::RowMajor, {valid}, SLayout::ColMajor, {_FRACTAL}>"
        case Form.LEFT:
            return f"TileLeft<{element}, {storage}, {valid}>"
        case Form.RIGHT:
            return f"TileRight<{element}, {storage}, {valid}>"
        case Form.ACC:
            return f"TileAcc<{element}, {storage}, {valid}>"
        case _:
            assert_never(tile.form)


def alias_stem(tile: Tile) -> str:
    """Return a short name for the type of a tile: VecF32_16x128, with the valid part where it is smaller."""
    kind = {Form.ROWS: "Vec", Form.COLUMN: "Col", Form.NZ: "Mat", Form.ZN: "MatT", Form.LEFT: "Left", Form.RIGHT: "Right",
            Form.ACC: "Acc"}[tile.form]
    name = f"{kind}{str(tile.dtype).upper()}_{tile.rows}x{tile.cols}"
    if is_dynamic(tile):
        return f"{name}_dyn"
    rows, cols = int(_const(tile.valid_rows)), int(_const(tile.valid_cols))
    return name if (rows, cols) == (tile.rows, tile.cols) else f"{name}_{rows}x{cols}"


def _const(node: object) -> float:
    if not isinstance(node, Const):
        raise InternalError("a valid extent is not constant", repr(node))
    return float(node.value)
