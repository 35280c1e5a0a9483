"""A piece without a shape."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tensor], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.load(x, (0, 0)))


# error[T207]: `pto.load` needs the shape of the piece
#   --> load_without_shape.py:11:18
#      |
#   11 |     pto.store(y, pto.load(x, (0, 0)))
#      |                  ^^^^^^^^^^^^^^^^^^^
#    = expected: shape=(rows, cols)
#    = help:     pto.load(x, (row, col), shape=(16, 64))
