"""An Out parameter that only one side of a branch has stored is read."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 2):
        pto.store(y, x)
    pto.store(y, y + 1)


# error[K106]: Out parameter `y` is read before it is certainly written
#   --> out_stored_on_one_side.py:12:18
#      |
#   12 |     pto.store(y, y + 1)
#      |                  ^^^^^
#    = help:     store all of it first, or declare it y: InOut[...] to read what it held
