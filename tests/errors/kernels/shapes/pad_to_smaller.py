"""Padding makes nothing smaller."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.pad(x, (8, 8)))


# error[T202]: `pto.pad`: the result is smaller than the tile
#   --> pad_to_smaller.py:10:18
#      |
#   10 |     pto.store(y, pto.pad(x, (8, 8)))
#      |                  ^^^^^^^^^^^^^^^^^^
#    = expected: at least [8, 16]
#    = found:    [8, 8]
#    = help:     a slice makes it smaller: x[:8, :64]
