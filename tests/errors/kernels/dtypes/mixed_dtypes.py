"""Two dtypes meet in one op."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], n: In[Tile[4, 8, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x + n)


# error[T203]: `pto.add`: operands of different dtypes
#   --> mixed_dtypes.py:10:18
#      |
#   10 |     pto.store(y, x + n)
#      |                  ^^^^^
#    = expected: one dtype
#    = found:    Tile[4, 8, f32] and Tile[4, 8, i32]
#    = help:     convert one of them, e.g. pto.cast(x, DType.F32)
