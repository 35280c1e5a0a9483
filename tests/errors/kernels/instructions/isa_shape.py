"""An operand would have to broadcast."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    s = ptoisa.Tile(4, 1, DType.F32)
    ptoisa.TROWSUM(s, t)
    ptoisa.TADD(t, t, s)
    ptoisa.TSTORE(y, t)


# error[T202]: `ptoisa.TADD`: src1 has the wrong shape
#   --> isa_shape.py:14:5
#      |
#   14 |     ptoisa.TADD(t, t, s)
#      |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: [4, 8]
#    = found:    Tile[4, 1, f32]
#    = help:     ptoisa.TROWEXPANDADD and ptoisa.TCOLEXPANDADD spread a column or a row
