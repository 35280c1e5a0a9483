"""Fewer rows than the index has."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(index: In[Tile[4, 1, DType.I32]], value: In[Tile[4, 8, DType.F32]], y: Out[Tensor]) -> None:
    pto.scatter(y, index, value[:3])


# error[T202]: parameter `y`: the value has another shape
#   --> scatter_of_unequal_rows.py:11:5
#      |
#   11 |     pto.scatter(y, index, value[:3])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: Tile[4, 8, f32]
#    = found:    Tile[3, 8, f32]
