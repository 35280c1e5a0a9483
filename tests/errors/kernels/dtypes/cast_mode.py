"""A rounding mode that there is none of."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.I8]]) -> None:
    pto.store(y, pto.cast(x, DType.I8, mode="nearest"))


# error[T207]: `pto.cast`: no such mode
#   --> cast_mode.py:10:18
#      |
#   10 |     pto.store(y, pto.cast(x, DType.I8, mode="nearest"))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: mode='rint', 'round', 'floor', 'ceil', 'trunc', 'odd'
#    = found:    'nearest'
