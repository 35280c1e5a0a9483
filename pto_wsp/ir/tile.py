"""Define tile types: rectangles of elements that kernels compute on.

>>> Tile[16, 128, DType.F32]
Tile[16, 128, f32]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from pto_wsp.errors import KernelSignatureError
from pto_wsp.ir.dtype import DType
from pto_wsp.source import here
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class TileType:
    """The type of a tile; its shape is always known at trace time."""

    rows: int
    cols: int
    dtype: DType

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.rows, self.cols

    @property
    def n_elements(self) -> int:
        """rows · cols."""
        return self.rows * self.cols

    @property
    def size_bytes(self) -> int:
        """The size of the tile."""
        return self.n_elements * self.dtype.nbytes

    def with_dtype(self, dtype: DType) -> TileType:
        """Return the same shape with another dtype."""
        return TileType(self.rows, self.cols, dtype)

    def __repr__(self) -> str:
        return f"Tile[{self.rows}, {self.cols}, {self.dtype}]"


@dataclass(frozen=True, slots=True, repr=False)
class SizedTile:
    """A tile whose number of rows or columns has a name: the view bound to it says how many there are."""

    rows: int | str
    cols: int | str
    dtype: DType

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it."""
        return tuple(n for n in (self.rows, self.cols) if isinstance(n, str))

    def of(self, sizes: Mapping[str, int]) -> TileType:
        """Return the type for a number for each name.

        Raises: K101 if the tile is too large.
        """
        rows, cols = (sizes[n] if isinstance(n, str) else n for n in (self.rows, self.cols))
        return fixed_tile(rows, cols, self.dtype)

    def __repr__(self) -> str:
        return f"Tile[{self.rows!r}, {self.cols!r}, {self.dtype}]"


MAX_TILE_BYTES = 1 << 28


class Tile:
    """`Tile[rows, cols, dtype]` in a kernel's annotations. `Tile["R", 128, dtype]`: as many rows as the bound view has."""

    def __class_getitem__(cls, item: object) -> TileType | SizedTile:
        return tile_type(item)

    def __new__(cls, *args: object, **names: object) -> Tile:
        shown = (*map(repr, args), *(f"{name}={value!r}" for name, value in names.items()))
        raise KernelSignatureError("Tile takes its shape and dtype in brackets", here(), expected="Tile[rows, cols, dtype]",
                                   found=f"Tile({', '.join(shown)})")


_EXPECTED = "Tile[rows, cols, dtype] with whole numbers >= 1, or names, and a DType"


def tile_type(item: object) -> TileType | SizedTile:
    """Return the type `Tile[item]`.

    Raises: K101 unless `item` is rows, columns and a dtype of a tile of at most MAX_TILE_BYTES.
    """
    if not isinstance(item, tuple) or len(item) != 3:
        raise KernelSignatureError("Tile takes rows, columns and a dtype", here(), expected=_EXPECTED, found=f"Tile[{item!r}]")
    rows, cols, dtype = *item[:2], DType.of(item[2])
    named = [isinstance(n, str) and n.isidentifier() for n in (rows, cols)]
    if any(named) and all(is_name or is_extent(n) for is_name, n in zip(named, (rows, cols), strict=True)) and dtype is not None:
        return SizedTile(rows, cols, dtype)
    return fixed_tile(rows, cols, item[2])


def fixed_tile(rows: object, cols: object, dtype: object) -> TileType:
    """Return the type of a tile of known size.

    Raises: K101 as `tile_type`.
    """
    known = DType.of(dtype)
    if not is_extent(rows) or not is_extent(cols) or known is None:
        raise KernelSignatureError("Tile takes rows, columns and a dtype", here(), expected=_EXPECTED,
                                   found=f"Tile[{rows!r}, {cols!r}, {dtype!r}]")
    tile = TileType(rows, cols, known)
    if tile.size_bytes > MAX_TILE_BYTES:
        raise KernelSignatureError("a tile is too large", here(), expected=f"at most {MAX_TILE_BYTES} bytes",
                                   found=f"{tile!r}, {tile.size_bytes} bytes", help="loop over pieces of a Tensor parameter")
    return tile


def is_extent(n: object) -> TypeGuard[int]:
    """Tell whether a value is an extent of a tile: a whole number >= 1."""
    return isinstance(n, int) and not isinstance(n, bool) and n >= 1
