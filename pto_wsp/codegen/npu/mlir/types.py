"""Types of the `pto` dialect: elements, tiles, views of global memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pto_wsp.arch.model import Arch
from pto_wsp.expr.tile_program import Form, Tile
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar

_ELEMENTS: Mapping[DType, str] = {
    DType.F32: "f32", DType.F16: "f16", DType.BF16: "bf16", DType.I8: "i8", DType.I16: "i16", DType.I32: "i32", DType.I64: "i64",
    DType.U8: "ui8", DType.U16: "ui16", DType.U32: "ui32", DType.U64: "ui64", DType.BOOL: "ui8",
}
_Layout: TypeAlias = tuple[str, str, str, int]      # loc, blayout, slayout, bytes of a fractal
_ROWS, _COLS = "row_major", "col_major"
_FORMS: Mapping[Form, _Layout] = {
    Form.ROWS: ("vec", _ROWS, "none_box", 512), Form.COLUMN: ("vec", _COLS, "none_box", 512),
    Form.NZ: ("mat", _COLS, _ROWS, 512), Form.ZN: ("mat", _ROWS, _COLS, 512),
    Form.LEFT: ("left", _ROWS, _ROWS, 512), Form.RIGHT: ("right", _ROWS, _COLS, 512), Form.ACC: ("acc", _COLS, _ROWS, 1024),
}


def element(dtype: DType) -> str | None:
    """Return the type of an element, None for one that the dialect has no word for."""
    return _ELEMENTS.get(dtype)


def tile_type(tile: Tile, arch: Arch) -> str:
    """Return the type of a tile. The left operand of products lies by columns of blocks on a5."""
    loc, blayout, slayout, fractal = _FORMS[tile.form]
    if tile.form is Form.LEFT and arch.family == "a5":
        blayout = _COLS
    return (f"!pto.tile_buf<loc={loc}, dtype={element(tile.dtype)}, rows={tile.rows}, cols={tile.cols}, v_row={extent(tile.valid_rows)}, "
            f"v_col={extent(tile.valid_cols)}, blayout={blayout}, slayout={slayout}, fractal={fractal}, pad=0>")


def view_type(dtype: DType) -> str:
    """Return the type of a parameter's view."""
    return f"!pto.tensor_view<?x?x{element(dtype)}>"


def part_type(tile: Tile, dtype: DType) -> str:
    """Return the type of the part of a view that a tile is loaded from, or stored to."""
    return f"!pto.partition_tensor_view<{extent(tile.valid_rows)}x{extent(tile.valid_cols)}x{element(dtype)}>"


def extent(value: Scalar) -> str:
    """Return a number, or ? where it is known only at run time."""
    return str(int(value.value)) if isinstance(value, Const) else "?"
