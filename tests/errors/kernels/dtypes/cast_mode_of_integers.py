"""A rounding mode where nothing is rounded by one."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.I32]], y: Out[Tile[4, 8, DType.I8]]) -> None:
    pto.store(y, pto.cast(x, DType.I8, mode="floor"))


# error[T207]: `pto.cast`: i32 becomes i8 without a rounding mode
#   --> cast_mode_of_integers.py:10:18
#      |
#   10 |     pto.store(y, pto.cast(x, DType.I8, mode="floor"))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a mode only where a float becomes an integer or another float
#    = found:    mode='floor'
#    = help:     leave mode out
