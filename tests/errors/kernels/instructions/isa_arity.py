"""An operand is missing."""

from pto_wsp.api.ptoisa import ptoisa
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TADD(t, t)
    ptoisa.TSTORE(y, t)


# error[T101]: `ptoisa.TADD`: missing a required argument: 'src1'
#   --> isa_arity.py:12:5
#      |
#   12 |     ptoisa.TADD(t, t)
#      |     ^^^^^^^^^^^^^^^^^
#    = expected: ptoisa.TADD(dst, src0, src1)
#    = found:    ptoisa.TADD(<buffer t: Tile[4, 8, f32]>, <buffer t: Tile[4, 8, f32]>)
