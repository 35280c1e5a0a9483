"""where without a mask."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.where(x, x, 0))


# error[T204]: `pto.where` does not take f32
#   --> mask_expected.py:10:18
#      |
#   10 |     pto.store(y, pto.where(x, x, 0))
#      |                  ^^^^^^^^^^^^^^^^^^
#    = expected: bool
#    = found:    Tile[4, 8, f32]
#    = help:     give a comparison, e.g. x > 0
