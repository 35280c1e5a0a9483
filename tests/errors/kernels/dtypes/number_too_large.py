"""A number does not fit the dtype of its tile."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(n: In[Tile[4, 8, DType.I8]], y: Out[Tile[4, 8, DType.I8]]) -> None:
    pto.store(y, n + 300)


# error[T209]: `pto.add`: 300 does not fit i8
#   --> number_too_large.py:10:18
#      |
#   10 |     pto.store(y, n + 300)
#      |                  ^^^^^^^
#    = expected: a number that i8 holds
#    = found:    300
