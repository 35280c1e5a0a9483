"""A tile is indexed by a mask."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[x > 0])


# error[T302]: a row of a tile is picked by a whole number or a slice
#   --> index_by_mask.py:10:18
#      |
#   10 |     pto.store(y, x[x > 0])
#      |                  ^^^^^^^^
#    = expected: x[2:6, 0::2]
#    = found:    <Tile[8, 16, bool]>
#    = help:     a tile has one shape: pto.where(mask, x, 0) keeps it, pto.gather(x, index) picks
