"""The index lies along a row."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.gather(table, index.T, cols=8))


# error[T202]: `pto.gather`: the index of rows has one column
#   --> gather_by_a_row_of_indices.py:11:18
#      |
#   11 |     pto.store(y, pto.gather(table, index.T, cols=8))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: [N, 1]
#    = found:    <Tile[1, 4, i32]>
#    = help:     transpose it: index.T
