"""Rows of a Tensor parameter, how wide is not said."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.gather(table, index))


# error[T207]: `pto.gather` needs to know how many columns
#   --> gather_without_columns.py:11:18
#      |
#   11 |     pto.store(y, pto.gather(table, index))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: cols=(first, count), or cols=count
#    = help:     pto.gather(table, index, cols=64)
