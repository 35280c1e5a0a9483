"""A tile value is assigned to."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = x + 1
    t[:] = 0
    pto.store(y, t)


# error[K106]: a tile value never changes
#   --> changed_value.py:11:5
#      |
#   11 |     t[:] = 0
#      |     ^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(x.shape, x.dtype), then acc[:] = ...
