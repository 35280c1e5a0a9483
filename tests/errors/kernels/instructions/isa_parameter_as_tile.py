"""An instruction is given a parameter."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TADD(t, t, x)
    ptoisa.TSTORE(y, t)


# error[T208]: `ptoisa.TADD`: src1 is not a declared tile
#   --> isa_parameter_as_tile.py:12:5
#      |
#   12 |     ptoisa.TADD(t, t, x)
#      |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: t = ptoisa.Tile(rows, cols, dtype)
#    = found:    <parameter x: In[Tile[4, 8, f32]]>
#    = help:     a parameter lies in global memory: t = ptoisa.Tile(rows, cols, dtype); ptoisa.TLOAD(t, x)
