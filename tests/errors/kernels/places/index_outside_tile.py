"""A row that the tile does not have."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[8] + x)


# error[T301]: the tile has no row 8
#   --> index_outside_tile.py:10:18
#      |
#   10 |     pto.store(y, x[8] + x)
#      |                  ^^^^
#    = expected: -8 .. 7
#    = found:    8
