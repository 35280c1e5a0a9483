"""A shape with another number of elements."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.reshape(x, (8, 15)))


# error[T202]: `pto.reshape`: [8, 15] has another number of elements
#   --> reshape_of_another_size.py:10:18
#      |
#   10 |     pto.store(y, pto.reshape(x, (8, 15)))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 128 elements
#    = found:    120, from Tile[8, 16, f32]
