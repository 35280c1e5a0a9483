"""A slice that picks nothing."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[4:4] + x)


# error[T301]: the rows of a tile: the slice is empty
#   --> empty_slice.py:10:18
#      |
#   10 |     pto.store(y, x[4:4] + x)
#      |                  ^^^^^^
#    = expected: at least one of 8 rows
#    = found:    4:4
