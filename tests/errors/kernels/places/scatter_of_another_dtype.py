"""Values of another dtype than the tile that takes them."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.scatter(x, pto.iota((8, 4)), pto.iota((8, 4))))


# error[T203]: `pto.scatter`: the values have another dtype
#   --> scatter_of_another_dtype.py:10:18
#      |
#   10 |     pto.store(y, pto.scatter(x, pto.iota((8, 4)), pto.iota((8, 4))))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: f32
#    = found:    Tile[8, 4, i32]
#    = help:     convert them: pto.cast(value, DType.F32)
