"""A Tensor parameter in arithmetic."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tensor import Tensor
from pto_wsp.types.tile import Tile


def mistake(x: In[Tensor], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.exp(x))


# error[T205]: `pto.exp`: `x` is a Tensor, not a tile
#   --> tensor_as_tile.py:11:18
#      |
#   11 |     pto.store(y, pto.exp(x))
#      |                  ^^^^^^^^^^
#    = expected: a tile or a number
#    = found:    <parameter x: In[Tensor f32]>
#    = help:     load a piece: pto.load(x, (row, col), shape=(r, c))
