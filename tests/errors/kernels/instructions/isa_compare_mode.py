"""A way to compare that is not there."""

from pto_wsp.api.kernels.ptoisa_namespace import ptoisa
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    m = ptoisa.Tile(4, 8, DType.BOOL)
    ptoisa.TCMP(m, t, t, "<")
    ptoisa.TSEL(t, m, t, t)
    ptoisa.TSTORE(y, t)


# error[T205]: `ptoisa.TCMP`: mode is no way to compare
#   --> isa_compare_mode.py:13:5
#      |
#   13 |     ptoisa.TCMP(m, t, t, "<")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of eq, ne, lt, le, gt, ge
#    = found:    '<'
