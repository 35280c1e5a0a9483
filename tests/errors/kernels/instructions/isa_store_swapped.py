"""TSTORE has its operands exchanged."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TSTORE(t, y)


# error[T208]: `ptoisa.TSTORE`: dst is not a parameter
#   --> isa_store_swapped.py:12:5
#      |
#   12 |     ptoisa.TSTORE(t, y)
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: an Out or InOut parameter
#    = found:    <buffer t: Tile[4, 8, f32]>
#    = help:     the destination comes first: ptoisa.TSTORE(out, t)
