"""An op gets one operand too many."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.exp(x, x))


# error[T101]: `pto.exp`: too many positional arguments
#   --> too_many_arguments.py:10:18
#      |
#   10 |     pto.store(y, pto.exp(x, x))
#      |                  ^^^^^^^^^^^^^
#    = expected: pto.exp(x)
#    = found:    pto.exp(<parameter x: In[Tile[4, 8, f32]]>, <parameter x: In[Tile[4, 8, f32]]>)
