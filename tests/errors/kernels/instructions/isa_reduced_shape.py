"""The destination of a reduction is as wide as its source."""

from pto_wsp.api.kernels.ptoisa_namespace import ptoisa
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
