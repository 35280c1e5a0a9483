"""A piece without a shape."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tensor import Tensor
from pto_wsp.types.tile import Tile


def mistake(x: In[Tensor], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.load(x, (0, 0)))


# error[T205]: `pto.load` needs the shape of the piece
#   --> load_without_shape.py:11:18
#      |
#   11 |     pto.store(y, pto.load(x, (0, 0)))
#      |                  ^^^^^^^^^^^^^^^^^^^
#    = expected: shape=(rows, cols)
#    = help:     pto.load(x, (row, col), shape=(16, 64))
