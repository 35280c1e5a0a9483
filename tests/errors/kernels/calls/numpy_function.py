"""NumPy's function on a tile."""

import numpy as np

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, np.asarray(x))


# error[K103]: NumPy array of a tile, whose elements are known only at run time
#   --> numpy_function.py:12:18
#      |
#   12 |     pto.store(y, np.asarray(x))
#      |                  ^^^^^^^^^^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <parameter x: In[Tile[4, 8, f32]]>
#    = help:     a kernel computes with the ops of pto: pto.exp(x) for np.exp(x); dir(pto) lists them
