"""The destination has another dtype."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    n = ptoisa.Tile(4, 8, DType.I32)
    ptoisa.TADD(n, t, t)
    ptoisa.TSTORE(y, t)


# error[T203]: `ptoisa.TADD`: the destination has another dtype
#   --> isa_dtype.py:13:5
#      |
#   13 |     ptoisa.TADD(n, t, t)
#      |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: f32
#    = found:    Tile[4, 8, i32]
#    = help:     ptoisa.TCVT(dst, src) converts
