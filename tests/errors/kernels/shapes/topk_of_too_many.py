"""More elements than a row has."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    values, _ = pto.topk(x, 17)
    pto.store(y, values)


# error[T202]: `pto.topk`: k is 17
#   --> topk_of_too_many.py:10:17
#      |
#   10 |     values, _ = pto.topk(x, 17)
#      |                 ^^^^^^^^^^^^^^^
#    = expected: 1 .. 16, the columns of the tile
#    = found:    17
