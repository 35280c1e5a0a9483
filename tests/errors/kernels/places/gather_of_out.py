"""Rows of what holds nothing yet."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(y: Out[Tensor], index: In[Tile[4, 1, DType.I32]]) -> None:
    pto.scatter(y, index, pto.gather(y, index, cols=8))


# error[K106]: Out parameter `y` cannot be read
#   --> gather_of_out.py:11:27
#      |
#   11 |     pto.scatter(y, index, pto.gather(y, index, cols=8))
#      |                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: In or InOut
#    = found:    declared at gather_of_out.py:10:13
#    = help:     declare it InOut to read what it holds
