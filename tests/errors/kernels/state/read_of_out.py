"""An Out parameter is read before it is stored."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, y + 1)


# error[K106]: Out parameter `y` is read before it is certainly written
#   --> read_of_out.py:10:18
#      |
#   10 |     pto.store(y, y + 1)
#      |                  ^^^^^
#    = help:     store all of it first, or declare it y: InOut[...] to read what it held
