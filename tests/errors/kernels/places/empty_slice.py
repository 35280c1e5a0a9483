"""A slice that picks nothing."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, x[4:4] + x)


# error[T301]: the rows of a tile: the slice is empty
#   --> empty_slice.py:10:18
#      |
#   10 |     pto.store(y, x[4:4] + x)
#      |                  ^^^^^^
#    = expected: at least one of 8 rows
#    = found:    4:4
