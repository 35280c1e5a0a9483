"""Rows of what holds nothing yet."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tensor import Tensor
from pto_wsp.types.tile import Tile


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
