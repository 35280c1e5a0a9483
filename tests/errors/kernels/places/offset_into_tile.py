"""A run-time offset into a Tile parameter."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[2, 8, DType.F32]]) -> None:
    pto.store(y, pto.load(x, (n, 0), shape=(2, 8)))


# error[T207]: `pto.load`: an offset into a Tile is known when the kernel is traced
#   --> offset_into_tile.py:10:18
#      |
#   10 |     pto.store(y, pto.load(x, (n, 0), shape=(2, 8)))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: whole numbers
#    = found:    n
#    = help:     declare `x` as a Tensor to move pieces of it
