"""A column to spread is a row."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    s = ptoisa.Tile(1, 8, DType.F32)
    ptoisa.TCOLSUM(s, t)
    ptoisa.TROWEXPANDADD(t, t, s)
    ptoisa.TSTORE(y, t)


# error[T202]: `ptoisa.TROWEXPANDADD`: src1 has the wrong shape
#   --> isa_spread_shape.py:14:5
#      |
#   14 |     ptoisa.TROWEXPANDADD(t, t, s)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: [4, 1]
#    = found:    Tile[1, 8, f32]
