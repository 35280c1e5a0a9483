"""A float does not fit the dtype of its tile: it would become infinite."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F16]], y: Out[Tile[4, 8, DType.F16]]) -> None:
    pto.store(y, x + 1e5)


# error[T209]: `pto.add`: 100000.0 does not fit f16
#   --> float_too_large.py:10:18
#      |
#   10 |     pto.store(y, x + 1e5)
#      |                  ^^^^^^^
#    = expected: a number that f16 holds
#    = found:    100000.0
