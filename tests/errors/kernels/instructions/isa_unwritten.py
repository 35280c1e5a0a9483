"""A tile is read before an instruction wrote it."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    s = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TADD(t, t, s)
    ptoisa.TSTORE(y, t)


# error[K106]: buffer `s` is read before it is certainly written
#   --> isa_unwritten.py:13:5
#      |
#   13 |     ptoisa.TADD(t, t, s)
#      |     ^^^^^^^^^^^^^^^^^^^^
#    = help:     give it an init, e.g. pto.alloc(..., init=0)
