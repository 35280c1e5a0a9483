"""Define tile types: rectangles of elements that kernels compute on.

>>> Tile[16, 128, DType.F32]
Tile[16, 128, f32]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
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
class StackType(TileType):
    """The type of a tile of rank 3 and more: a tile [rows, cols] at each index of the leading extents. Kernel IR has tiles alone."""

    leading: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The leading extents, rows, cols."""
        return *self.leading, self.rows, self.cols

    @property
    def indices(self) -> tuple[tuple[int, ...], ...]:
        """The indices of the leading axes, in row-major order."""
        return tuple(indices(self.leading))

    @property
    def each(self) -> TileType:
        """The type of one of the tiles."""
        return TileType(self.rows, self.cols, self.dtype)

    def __repr__(self) -> str:
        return f"Tile[{', '.join(map(str, self.extents))}, {self.dtype}]"


def indices(leading: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of leading axes, in row-major order."""
    return product(*map(range, leading))


def part_name(name: str, index: Sequence[int]) -> str:
    """Return the name of a tile of a stack: `x[0, 1]`."""
    return f"{name}[{', '.join(map(str, index))}]"


def whole_name(name: str) -> str:
    """Return the name of the stack that a tile is of, by its name; the name itself of any other tile."""
    return name.partition("[")[0]


def extents_of(tile: TileType) -> tuple[int, ...]:
    """Return the extents of a tile of any rank."""
    return tile.extents if isinstance(tile, StackType) else tile.shape


@dataclass(frozen=True, slots=True, repr=False)
class SizedTile:
    """A tile of which an extent has a name: the view bound to it says how large the extent is."""

    extents: tuple[int | str, ...]
    dtype: DType

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it."""
        return tuple(n for n in self.extents if isinstance(n, str))

    def of(self, sizes: Mapping[str, int]) -> TileType:
        """Return the type for a number for each name.

        Raises: K101 if the tile is too large.
        """
        return fixed_tile([sizes[n] if isinstance(n, str) else n for n in self.extents], self.dtype)

    def __repr__(self) -> str:
        return f"Tile[{', '.join(map(repr, self.extents))}, {self.dtype}]"


MAX_TILE_BYTES = 1 << 28
MAX_RANK = 8
MAX_LEADING = 64      # tiles in a stack: each op of a kernel is written out for each


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

    Raises: K101 unless `item` is rows, columns and a dtype of a tile of at most MAX_TILE_BYTES; before rows, leading extents.
    """
    if not isinstance(item, tuple) or not 3 <= len(item) <= MAX_RANK + 1:
        raise KernelSignatureError("Tile takes rows, columns and a dtype", here(), expected=_EXPECTED, found=f"Tile[{item!r}]")
    *extents, last = item
    dtype = DType.of(last)
    named = [isinstance(n, str) and n.isidentifier() for n in extents]
    if any(named) and all(is_name or is_extent(n) for is_name, n in zip(named, extents, strict=True)) and dtype is not None:
        return SizedTile(tuple(extents), dtype)
    return fixed_tile(extents, last)


def fixed_tile(extents: Sequence[object], dtype: object) -> TileType:
    """Return the type of a tile of known size: a `StackType` for more than two extents.

    Raises: K101 as `tile_type`.
    """
    known = DType.of(dtype)
    sizes = [n for n in extents if is_extent(n)]
    if len(sizes) < len(extents) or known is None:
        raise KernelSignatureError("Tile takes rows, columns and a dtype", here(), expected=_EXPECTED,
                                   found=f"Tile[{', '.join(map(repr, (*extents, dtype)))}]")
    *leading, rows, cols = sizes
    tile = StackType(rows, cols, known, tuple(leading)) if leading else TileType(rows, cols, known)
    size_bytes = math.prod(leading) * tile.size_bytes
    if size_bytes > MAX_TILE_BYTES:
        raise KernelSignatureError("a tile is too large", here(), expected=f"at most {MAX_TILE_BYTES} bytes",
                                   found=f"{tile!r}, {size_bytes} bytes", help="loop over pieces of a Tensor parameter")
    if math.prod(leading) > MAX_LEADING:
        raise KernelSignatureError("a tile has too many leading positions", here(), found=f"{tile!r}: {math.prod(leading)}",
                                   expected=f"at most {MAX_LEADING}: a kernel's ops are written out for each",
                                   help="loop over them in the workload, or bind elementwise work as one tile of more rows")
    return tile


def is_extent(n: object) -> TypeGuard[int]:
    """Tell whether a value is an extent of a tile: a whole number >= 1."""
    return isinstance(n, int) and not isinstance(n, bool) and n >= 1
