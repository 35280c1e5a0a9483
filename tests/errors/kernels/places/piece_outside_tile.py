"""A piece of a Tile parameter leaves it."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]) -> None:
    pto.store(y, pto.load(x, (3, 0), shape=(2, 8)))


# error[T301]: `pto.load` leaves parameter `x`
#   --> piece_outside_tile.py:10:18
#      |
#   10 |     pto.store(y, pto.load(x, (3, 0), shape=(2, 8)))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 0 <= row, row + 2 <= 4
#    = found:    row 3
