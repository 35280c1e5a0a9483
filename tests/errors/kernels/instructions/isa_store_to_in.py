"""An In parameter is stored to."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TSTORE(x, t)
    ptoisa.TSTORE(y, t)


# error[K106]: parameter `x` is In: it cannot be stored to
#   --> isa_store_to_in.py:12:5
#      |
#   12 |     ptoisa.TSTORE(x, t)
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: Out or InOut
#    = found:    declared at isa_store_to_in.py:9:13
#    = help:     declare it InOut, if the kernel may change it
