"""A float meets a tile of integers."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(n: In[Tile[4, 8, DType.I32]], y: Out[Tile[4, 8, DType.I32]]) -> None:
    pto.store(y, n * 2.5)


# error[T203]: `pto.mul`: a float meets a tile of i32
#   --> float_with_integer_tile.py:10:18
#      |
#   10 |     pto.store(y, n * 2.5)
#      |                  ^^^^^^^
#    = expected: a number that i32 holds
#    = found:    2.5
#    = help:     write a whole number, or pto.cast the tile to a float
