"""A tile is read before an instruction wrote it."""

from pto_wsp.api.kernels.ptoisa_namespace import ptoisa
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
