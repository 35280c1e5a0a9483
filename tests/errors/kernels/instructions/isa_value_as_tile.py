"""An instruction is given the value of an op."""

from pto_wsp.api.pto import pto
from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TADD(t, t, pto.exp(t))
    ptoisa.TSTORE(y, t)


# error[T208]: `ptoisa.TADD`: src1 is not a declared tile
#   --> isa_value_as_tile.py:13:5
#      |
#   13 |     ptoisa.TADD(t, t, pto.exp(t))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: t = ptoisa.Tile(rows, cols, dtype)
#    = found:    <Tile[4, 8, f32]>
