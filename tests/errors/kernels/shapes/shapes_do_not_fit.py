"""Shapes that do not broadcast."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], z: In[Tile[4, 4, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x + z)


# error[T202]: `pto.add`: the operands' shapes do not fit
#   --> shapes_do_not_fit.py:10:18
#      |
#   10 |     pto.store(y, x + z)
#      |                  ^^^^^
#    = expected: equal shapes; [R, 1], [1, C] and [1, 1] broadcast to [R, C]
#    = found:    Tile[4, 8, f32] and Tile[4, 4, f32]
