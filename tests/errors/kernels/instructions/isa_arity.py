"""An operand is missing."""

from pto_wsp.api.kernels.ptoisa_namespace import ptoisa
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
