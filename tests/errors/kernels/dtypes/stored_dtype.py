"""A tile is stored to a parameter of another dtype."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(n: In[Tile[4, 8, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, n)


# error[T203]: parameter `y`: the value has another dtype
#   --> stored_dtype.py:10:5
#      |
#   10 |     pto.store(y, n)
#      |     ^^^^^^^^^^^^^^^
#    = expected: Tile[4, 8, f32]
#    = found:    Tile[4, 8, i32]
#    = help:     convert it: pto.cast(value, DType.F32)
