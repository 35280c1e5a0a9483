"""Define tile types: rectangles of elements that kernels compute on.

>>> Tile[16, 128, DType.F32]
Tile[16, 128, f32]
"""

from __future__ import annotations

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


MAX_TILE_BYTES = 1 << 28


class Tile:
    """`Tile[rows, cols, dtype]` in a kernel's annotations."""

    def __class_getitem__(cls, item: object) -> TileType:
        return tile_type(item)

    def __new__(cls, *args: object) -> Tile:
        raise KernelSignatureError("Tile takes its shape and dtype in brackets", here(), expected="Tile[rows, cols, dtype]",
                                   found=f"Tile({', '.join(map(repr, args))})")


def tile_type(item: object) -> TileType:
    """Return the type `Tile[item]`.

    Raises: K101 unless `item` is rows, columns and a dtype of a tile of at most MAX_TILE_BYTES.
    """
    expected = "Tile[rows, cols, dtype] with whole numbers >= 1 and a DType"
    if not isinstance(item, tuple) or len(item) != 3:
        raise KernelSignatureError("Tile takes rows, columns and a dtype", here(), expected=expected, found=f"Tile[{item!r}]")
    rows, cols, dtype = item
    extents_fit = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in (rows, cols))
    if not extents_fit or not isinstance(dtype, DType):
        raise KernelSignatureError("Tile takes rows, columns and a dtype", here(), expected=expected,
                                   found=f"Tile[{rows!r}, {cols!r}, {dtype!r}]")
    tile = TileType(rows, cols, dtype)
    if tile.size_bytes > MAX_TILE_BYTES:
        raise KernelSignatureError("a tile is too large", here(), expected=f"at most {MAX_TILE_BYTES} bytes",
                                   found=f"{tile!r}, {tile.size_bytes} bytes", help="loop over pieces of a Tensor parameter")
    return tile
