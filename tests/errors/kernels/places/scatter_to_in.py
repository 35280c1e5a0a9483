"""Rows of an In parameter are written."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 1, DType.I32]]) -> None:
    pto.scatter(table, index, 0, cols=8)
    pto.store(y, index)


# error[K106]: parameter `table` is In: it cannot be stored to
#   --> scatter_to_in.py:11:5
#      |
#   11 |     pto.scatter(table, index, 0, cols=8)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: Out or InOut
#    = found:    declared at scatter_to_in.py:10:13
#    = help:     declare it InOut, if the kernel may change it
