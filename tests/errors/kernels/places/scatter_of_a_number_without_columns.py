"""A number in rows, how wide is not said."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tensor import Tensor
from pto_wsp.types.tile import Tile


def mistake(index: In[Tile[4, 1, DType.I32]], value: In[Tile[4, 8, DType.F32]], y: Out[Tensor]) -> None:
    pto.scatter(y, index, 0)
    pto.scatter(y, index, value)


# error[T205]: `pto.scatter` of a number needs to know how many columns
#   --> scatter_of_a_number_without_columns.py:11:5
#      |
#   11 |     pto.scatter(y, index, 0)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: cols=(first, count), or cols=count
#    = found:    0
