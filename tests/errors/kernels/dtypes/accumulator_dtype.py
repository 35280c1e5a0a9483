"""An i8 product is accumulated in i8."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(a: In[Tile[4, 4, DType.I8]], y: Out[Tile[4, 4, DType.I32]]) -> None:
    pto.store(y, pto.matmul(a, a, acc=a))


# error[T203]: `pto.matmul`: acc has another dtype than the product
#   --> accumulator_dtype.py:10:18
#      |
#   10 |     pto.store(y, pto.matmul(a, a, acc=a))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: Tile[4, 4, i32]
#    = found:    Tile[4, 4, i8]
#    = help:     allocate it as DType.I32
