"""A number in rows, how wide is not said."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(index: In[Tile[4, 1, DType.I32]], value: In[Tile[4, 8, DType.F32]], y: Out[Tensor]) -> None:
    pto.scatter(y, index, 0)
    pto.scatter(y, index, value)


# error[T207]: `pto.scatter` of a number needs to know how many columns
#   --> scatter_of_a_number_without_columns.py:11:5
#      |
#   11 |     pto.scatter(y, index, 0)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: cols=(first, count), or cols=count
#    = found:    0
