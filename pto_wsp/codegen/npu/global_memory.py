"""How the elements of a tile lie in global memory: the strides of a `GlobalTensor`, and whether it goes by rows or by columns."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.expr.tile_program import Form, ParamAccess, Tile
from pto_wsp.types.scalar import Const
from pto_wsp.values import dataclass

Stride: TypeAlias = Literal["rows", "cols"] | int    # the parameter's own step along its rows or columns, or a constant


@dataclass(frozen=True, slots=True)
class Geometry:
    """Steps in memory down and across a tile. `by_columns`: neighbours down a column are neighbours in memory (layout DN)."""

    down: Stride
    across: Stride
    by_columns: bool


def geometry(tile: Tile, access: ParamAccess, turned: bool) -> Geometry:
    """Return how a tile lies in a parameter; `turned`: the tile's rows go along the parameter's columns."""
    along_rows: Stride = 1 if access.unit_rows or access.row_dim is None else "rows"
    along_cols: Stride = 1 if access.unit_cols or access.col_dim is None else "cols"
    down, across = (along_cols, along_rows) if turned else (along_rows, along_cols)
    one_row, one_col = tile.valid_rows == Const(1), tile.valid_cols == Const(1)
    if tile.form is Form.ZN:
        return _dense(Geometry(1, across, True), down == 1 or one_row, tile)
    if one_col and tile.form is Form.COLUMN:
        return _dense(Geometry(1, _count(tile), True), down == 1 or one_row, tile)
    return _dense(Geometry(down, 1, False), across == 1 or one_col, tile)


def _dense(found: Geometry, fits: bool, tile: Tile) -> Geometry:
    if not fits:
        raise InternalError(f"tile `{tile.name}` lies across its rows in global memory", "selection turns such tiles")
    return found


def _count(tile: Tile) -> int:
    return tile.rows
