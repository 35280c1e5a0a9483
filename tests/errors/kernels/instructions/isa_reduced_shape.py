"""The destination of a reduction is as wide as its source."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    s = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TROWSUM(s, t)
    ptoisa.TSTORE(y, s)


# error[T202]: `ptoisa.TROWSUM`: the destination has another shape
#   --> isa_reduced_shape.py:13:5
#      |
#   13 |     ptoisa.TROWSUM(s, t)
#      |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: [4, 1]
#    = found:    Tile[4, 8, f32]
