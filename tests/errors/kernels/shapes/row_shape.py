"""rowadd with a tile that is no column."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.rowadd(x, x))


# error[T202]: `pto.rowadd`: the second tile has the wrong shape
#   --> row_shape.py:10:18
#      |
#   10 |     pto.store(y, pto.rowadd(x, x))
#      |                  ^^^^^^^^^^^^^^^^
#    = expected: [4, 1]
#    = found:    [4, 8]
