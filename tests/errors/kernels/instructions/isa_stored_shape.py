"""A tile of another shape is stored."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    s = ptoisa.Tile(4, 1, DType.F32)
    ptoisa.TROWSUM(s, t)
    ptoisa.TSTORE(y, s)


# error[T202]: `ptoisa.TSTORE`: src has another shape than parameter `y`
#   --> isa_stored_shape.py:14:5
#      |
#   14 |     ptoisa.TSTORE(y, s)
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: Tile[4, 8, f32]
#    = found:    Tile[4, 1, f32]
