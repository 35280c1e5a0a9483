"""TLOAD is given a tile."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TLOAD(t, t)
    ptoisa.TSTORE(y, t)


# error[T208]: `ptoisa.TLOAD`: src is not a parameter
#   --> isa_load_of_tile.py:12:5
#      |
#   12 |     ptoisa.TLOAD(t, t)
#      |     ^^^^^^^^^^^^^^^^^^
#    = expected: an In or InOut parameter
#    = found:    <buffer t: Tile[4, 8, f32]>
#    = help:     ptoisa.TMOV copies a tile
