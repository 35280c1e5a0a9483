"""An op gets one operand too many."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.exp(x, x))


# error[T101]: `pto.exp`: too many positional arguments
#   --> too_many_arguments.py:10:18
#      |
#   10 |     pto.store(y, pto.exp(x, x))
#      |                  ^^^^^^^^^^^^^
#    = expected: pto.exp(x)
#    = found:    pto.exp(<parameter x: In[Tile[4, 8, f32]]>, <parameter x: In[Tile[4, 8, f32]]>)
