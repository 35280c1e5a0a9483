"""What an Out parameter holds is not known."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(index: In[Tile[4, 1, DType.I32]], value: In[Tile[4, 8, DType.F32]], y: Out[Tensor]) -> None:
    pto.scatter_add(y, index, value)


# error[K106]: Out parameter `y` holds nothing to add to
#   --> scatter_add_to_out.py:11:5
#      |
#   11 |     pto.scatter_add(y, index, value)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: InOut
#    = found:    declared at scatter_add_to_out.py:10:81
#    = help:     declare it InOut to add to what it holds
