"""An instruction with a scalar is given a tile."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TADDS(t, t, t)
    ptoisa.TSTORE(y, t)


# error[T208]: `ptoisa.TADDS`: scalar is a tile
#   --> isa_tile_as_scalar.py:12:5
#      |
#   12 |     ptoisa.TADDS(t, t, t)
#      |     ^^^^^^^^^^^^^^^^^^^^^
#    = expected: a number or a scalar of the kernel
#    = found:    <buffer t: Tile[4, 8, f32]>
#    = help:     ptoisa.TADD takes two tiles
