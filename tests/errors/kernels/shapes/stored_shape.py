"""A tile is stored to a parameter of another shape."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(z: In[Tile[4, 4, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, z)


# error[T202]: parameter `y`: the value has another shape
#   --> stored_shape.py:10:5
#      |
#   10 |     pto.store(y, z)
#      |     ^^^^^^^^^^^^^^^
#    = expected: Tile[4, 8, f32]
#    = found:    Tile[4, 4, f32]
