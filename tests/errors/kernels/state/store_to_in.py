"""An In parameter is stored to."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(x, 0)


# error[K106]: parameter `x` is In: it cannot be stored to
#   --> store_to_in.py:10:5
#      |
#   10 |     pto.store(x, 0)
#      |     ^^^^^^^^^^^^^^^
#    = expected: Out or InOut
#    = found:    declared at store_to_in.py:9:13
#    = help:     declare it InOut, if the kernel may change it
