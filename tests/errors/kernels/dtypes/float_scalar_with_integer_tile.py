"""A float Scalar meets a tile of integers."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out, Scalar


def mistake(a: Scalar[DType.F32], y: Out[Tile[4, 8, DType.I32]]) -> None:
    pto.store(y, a)


# error[T203]: parameter `y`: a float meets a tile of i32
#   --> float_scalar_with_integer_tile.py:10:5
#      |
#   10 |     pto.store(y, a)
#      |     ^^^^^^^^^^^^^^^
#    = expected: a number that i32 holds
#    = found:    a
#    = help:     write a whole number, or pto.cast the tile to a float
