"""A function of NumPy that no op of kernels means."""

import numpy as np

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, np.arctan(x))


# error[T206]: no op of kernels is np.arctan
#   --> ufunc_without_an_op.py:12:18
#      |
#   12 |     pto.store(y, np.arctan(x))
#      |                  ^^^^^^^^^^^^
#    = expected: a tile's op, e.g. np.exp(x) or pto.exp(x)
#    = help:     dir(pto) lists the ops; pto.rowsum and the like reduce
