"""Columns of a Tensor parameter are not picked."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.gather(table, index, axis=1, cols=8))


# error[T207]: `pto.gather` picks rows of a Tensor parameter
#   --> gather_of_columns.py:11:18
#      |
#   11 |     pto.store(y, pto.gather(table, index, axis=1, cols=8))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: no axis, or axis=0
#    = found:    axis=1
#    = help:     load a tile and pick its columns: pto.gather(pto.load(T, (row, col), shape=(r, c)), index)
