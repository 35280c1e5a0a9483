"""A method of a function of NumPy."""

import numpy as np

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, np.add.outer(x, x))


# error[T206]: no op of kernels is np.add.outer
#   --> ufunc_method.py:12:18
#      |
#   12 |     pto.store(y, np.add.outer(x, x))
#      |                  ^^^^^^^^^^^^^^^^^^
#    = expected: a tile's op, e.g. np.exp(x) or pto.exp(x)
#    = help:     pto.add(x)
