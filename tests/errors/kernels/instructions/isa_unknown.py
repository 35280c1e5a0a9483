"""An instruction that is not there."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TMULT(t, t, t)
    ptoisa.TSTORE(y, t)


# error[T211]: `ptoisa` has no instruction `TMULT`
#   --> isa_unknown.py:12:5
#      |
#   12 |     ptoisa.TMULT(t, t, t)
#      |     ^^^^^^^^^^^^
#    = help:     did you mean ptoisa.TMUL?
