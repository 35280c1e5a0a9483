"""The destination has another dtype."""

from pto_wsp.api.kernels.ptoisa_namespace import ptoisa
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
