"""More elements than a row has."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
