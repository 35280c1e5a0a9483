"""Columns of tiles of different shapes in turn."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.interleave(x[:, :8], x[:, :4]))


# error[T202]: `pto.interleave`: tiles of different shapes
#   --> interleave_of_unequal_shapes.py:10:18
#      |
#   10 |     pto.store(y, pto.interleave(x[:, :8], x[:, :4]))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one shape
#    = found:    Tile[8, 8, f32] and Tile[8, 4, f32]
