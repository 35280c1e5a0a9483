"""An Out parameter is never stored."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]], z: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.exp(x)


# error[K102]: kernel `mistake`: Out parameter `y` is never stored
#   --> out_never_stored.py:9:43
#     |
#   9 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]], z: Out[Tile[4, 8, DType.F32]]) -> None:
#     |                                           ^
#    = help:     pto.store(y, value), or drop the parameter
#
# error[K102]: kernel `mistake`: Out parameter `z` is never stored
#   --> out_never_stored.py:9:74
#     |
#   9 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]], z: Out[Tile[4, 8, DType.F32]]) -> None:
#     |                                                                          ^
#    = help:     pto.store(z, value), or drop the parameter
