"""Padding to no size."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.pad(x, value=1))


# error[T207]: `pto.pad` takes a shape or widths
#   --> pad_without_size.py:10:18
#      |
#   10 |     pto.store(y, pto.pad(x, value=1))
#      |                  ^^^^^^^^^^^^^^^^^^^
#    = expected: shape=(rows, cols), or widths=((above, below), (left, right))
#    = found:    neither
