"""A tile has no third axis."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[0, 0, 0] + x)


# error[T302]: a tile has two axes
#   --> three_axes_of_tile.py:10:18
#      |
#   10 |     pto.store(y, x[0, 0, 0] + x)
#      |                  ^^^^^^^^^^
#    = expected: x[rows, cols]
#    = found:    [0, 0, 0]
