"""A mask that saturates."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.BOOL]]) -> None:
    pto.store(y, pto.cast(x, DType.BOOL, saturate=True))


# error[T207]: `pto.cast`: a mask does not saturate
#   --> cast_saturate_mask.py:10:18
#      |
#   10 |     pto.store(y, pto.cast(x, DType.BOOL, saturate=True))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: no saturate to or from bool
#    = found:    saturate=True
#    = help:     leave saturate out
