"""Tile values as they lie on chip: a room, and how the elements lie in it.

Rows take multiples of 32 bytes. A value of one column lies without gaps, so that the same bytes are a column, as reductions and
expansions of rows have it, and one row, as everything else has it.

>>> Held(0, "x", 5, 7, DType.F32, 8, 5, Const(5), Const(7)).type
Tile[5, 7, f32]
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr.tile_program import ALIGN_BYTES
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """A tile value in a room. `pitch`: elements from one row to the next, 1 for a value of one column without gaps.

    `stored_rows`: how many rows, or elements of a column, the room has at least.

    `valid_rows`, `valid_cols`: the part of rows x cols that instructions handle. `offset`: in bytes from the start of the room.
    """

    room: int
    name: str
    rows: int
    cols: int
    dtype: DType
    pitch: int
    stored_rows: int
    valid_rows: Scalar
    valid_cols: Scalar
    offset: int = 0

    @property
    def type(self) -> TileType:
        """Rows, columns and the dtype that it is held in."""
        return TileType(self.rows, self.cols, self.dtype)

    @property
    def is_column(self) -> bool:
        """True for a value of one column without gaps."""
        return self.pitch == 1

    @property
    def is_whole(self) -> bool:
        """True where all of it is valid."""
        return self.valid_rows == Const(self.rows) and self.valid_cols == Const(self.cols)

    def part(self, valid_rows: Scalar, valid_cols: Scalar) -> Held:
        """Return the same value with another valid part."""
        return replace(self, valid_rows=valid_rows, valid_cols=valid_cols)

    def turned(self) -> Held:
        """Return a value of one row as one of one column, or the other way round: the same bytes."""
        assert 1 in (self.rows, self.cols)
        if self.rows == self.cols == 1:
            return self
        pitch, stored = (1, self.pitch) if self.cols > 1 else (self.stored_rows, 1)
        return replace(self, rows=self.cols, cols=self.rows, pitch=pitch, stored_rows=stored,
                       valid_rows=self.valid_cols, valid_cols=self.valid_rows)

    def bits(self, dtype: DType) -> Held:
        """Return the same bytes as numbers of another dtype of the same width."""
        assert dtype.nbytes == self.dtype.nbytes
        return replace(self, dtype=dtype)

    def band(self, row: int, rows: int) -> Held:
        """Return some of its rows; it has more than one column, and all of it is valid."""
        assert not self.is_column and self.is_whole, self
        offset = self.offset + row * self.pitch * self.dtype.nbytes
        return replace(self, rows=rows, stored_rows=rows, valid_rows=Const(rows), offset=offset)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The elements of a value in the order that its columns were found in, in f32, their sign turned where the smallest comes first."""

    source: int
    values: Held
    turned: bool


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask as packed bits, on their way from a comparison to a choice. `yes`: a set bit means that it holds."""

    held: Held
    yes: bool


def padded(n: int, dtype: DType) -> int:
    """Return how many elements a row of `n` takes: a multiple of 32 bytes."""
    step = ALIGN_BYTES // dtype.nbytes
    return -(-n // step) * step
