"""Values that do not fit their index."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.scatter(x, pto.iota((8, 4)), x[:, :3]))


# error[T202]: `pto.scatter`: index and values do not fit the tile
#   --> scatter_of_another_shape.py:10:18
#      |
#   10 |     pto.store(y, pto.scatter(x, pto.iota((8, 4)), x[:, :3]))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: [8, 4] each, or 1 in place of either
#    = found:    Tile[8, 4, i32] and Tile[8, 3, f32]
