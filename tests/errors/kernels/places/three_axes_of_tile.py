"""A tile has no third axis."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[0, 0, 0] + x)


# error[T302]: a tile has two axes
#   --> three_axes_of_tile.py:10:18
#      |
#   10 |     pto.store(y, x[0, 0, 0] + x)
#      |                  ^^^^^^^^^^
#    = expected: x[rows, cols]
#    = found:    [0, 0, 0]
