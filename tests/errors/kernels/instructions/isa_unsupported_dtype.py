"""An instruction does not take the dtype."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    n = ptoisa.Tile(4, 8, DType.I32)
    ptoisa.TCVT(n, t)
    ptoisa.TEXP(n, n)
    ptoisa.TSTORE(y, t)


# error[T204]: `pto.exp` does not take i32
#   --> isa_unsupported_dtype.py:14:5
#      |
#   14 |     ptoisa.TEXP(n, n)
#      |     ^^^^^^^^^^^^^^^^^
#    = expected: f32, f64, f16, bf16
#    = found:    Tile[4, 8, i32]
#    = help:     convert it first: pto.cast(x, DType.F32)
