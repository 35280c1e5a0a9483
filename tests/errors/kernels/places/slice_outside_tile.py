"""A slice leaves its tile, which NumPy would cut without a word."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[:, 8:24])


# error[T301]: the columns of a tile: the slice leaves it
#   --> slice_outside_tile.py:10:18
#      |
#   10 |     pto.store(y, x[:, 8:24])
#      |                  ^^^^^^^^^^
#    = expected: bounds in -16 .. 16
#    = found:    8:24
