"""A scale that is no number a row or a column."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], s: In[Tile[2, 1, DType.F32]], y: Out[Tile[4, 8, DType.I8]]) -> None:
    pto.store(y, pto.quantize(x, s))


# error[T202]: `pto.quantize`: scale has the wrong shape
#   --> quantize_scale.py:10:18
#      |
#   10 |     pto.store(y, pto.quantize(x, s))
#      |                  ^^^^^^^^^^^^^^^^^^
#    = expected: a number, [1, 1], [4, 1] or [1, 8]
#    = found:    [2, 1]
