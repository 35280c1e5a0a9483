"""Inner extents of a product differ."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x @ x)


# error[T202]: `pto.matmul`: 8 columns meet 4 rows
#   --> matmul_shapes.py:10:18
#      |
#   10 |     pto.store(y, x @ x)
#      |                  ^^^^^
#    = expected: [M, K] @ [K, N]
#    = found:    Tile[4, 8, f32] @ Tile[4, 8, f32]
#    = help:     transpose the second: b.T
