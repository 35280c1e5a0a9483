"""An index with other rows than the tile."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.gather(x, pto.iota((4, 16))))


# error[T202]: `pto.gather`: the tiles' rows do not fit
#   --> index_of_another_height.py:10:18
#      |
#   10 |     pto.store(y, pto.gather(x, pto.iota((4, 16))))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: equal rows, or 1
#    = found:    8 and 4
