"""A number meets a mask."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.BOOL]]) -> None:
    pto.store(y, (x > 0) & 1)


# error[T203]: `pto.and_`: a number meets a tile of bool
#   --> number_with_mask.py:10:18
#      |
#   10 |     pto.store(y, (x > 0) & 1)
#      |                  ^^^^^^^^^^^
#    = expected: a number that bool holds
#    = found:    1
#    = help:     compare first, e.g. x > 0
