"""A form of gelu that there is none of."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.gelu(x, approximate="fast"))


# error[T207]: `pto.gelu`: no such approximate
#   --> gelu_approximate.py:10:18
#      |
#   10 |     pto.store(y, pto.gelu(x, approximate="fast"))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: approximate='none', 'tanh'
#    = found:    'fast'
