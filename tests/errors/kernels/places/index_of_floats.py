"""An index made of floats."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.gather(x, x))


# error[T204]: `pto.gather`: the index is no tile of whole numbers
#   --> index_of_floats.py:10:18
#      |
#   10 |     pto.store(y, pto.gather(x, x))
#      |                  ^^^^^^^^^^^^^^^^
#    = expected: i32 or i64
#    = found:    Tile[8, 16, f32]
#    = help:     convert it: pto.cast(index, DType.I32)
