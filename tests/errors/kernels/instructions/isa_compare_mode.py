"""A way to compare that is not there."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    m = ptoisa.Tile(4, 8, DType.BOOL)
    ptoisa.TCMP(m, t, t, "<")
    ptoisa.TSEL(t, m, t, t)
    ptoisa.TSTORE(y, t)


# error[T208]: `ptoisa.TCMP`: mode is no way to compare
#   --> isa_compare_mode.py:13:5
#      |
#   13 |     ptoisa.TCMP(m, t, t, "<")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of eq, ne, lt, le, gt, ge
#    = found:    '<'
