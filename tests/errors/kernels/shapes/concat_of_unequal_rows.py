"""Tiles of different heights are joined side by side."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.concat(x, x[:4]))


# error[T202]: `pto.concat`: tiles with different rows
#   --> concat_of_unequal_rows.py:10:18
#      |
#   10 |     pto.store(y, pto.concat(x, x[:4]))
#      |                  ^^^^^^^^^^^^^^^^^^^^
#    = expected: as many rows in each
#    = found:    Tile[8, 16, f32] and Tile[4, 16, f32]
#    = help:     join them along the other axis: axis=0
