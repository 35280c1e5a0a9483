"""A NumPy array in a kernel."""

import numpy as np

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.add(x, np.zeros((4, 8))))


# error[T213]: `pto.add`: a NumPy array is no tile
#   --> numpy_array.py:12:18
#      |
#   12 |     pto.store(y, pto.add(x, np.zeros((4, 8))))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a tile of this kernel or a number
#    = found:    an array of shape (4, 8)
#    = help:     pass it as an In parameter of the kernel
