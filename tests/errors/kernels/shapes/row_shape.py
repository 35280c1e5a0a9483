"""rowadd with a tile that is no column."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.rowadd(x, x))


# error[T202]: `pto.rowadd`: the second tile has the wrong shape
#   --> row_shape.py:10:18
#      |
#   10 |     pto.store(y, pto.rowadd(x, x))
#      |                  ^^^^^^^^^^^^^^^^
#    = expected: [4, 1]
#    = found:    [4, 8]
