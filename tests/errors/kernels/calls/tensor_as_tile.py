"""A Tensor parameter in arithmetic."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tensor], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.exp(x))


# error[T213]: `pto.exp`: `x` is a Tensor, not a tile
#   --> tensor_as_tile.py:11:18
#      |
#   11 |     pto.store(y, pto.exp(x))
#      |                  ^^^^^^^^^^
#    = expected: a tile or a number
#    = found:    <parameter x: In[Tensor f32]>
#    = help:     load a piece: pto.load(x, (row, col), shape=(r, c))
