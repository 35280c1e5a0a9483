"""A scale that is no number a row or a column."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]], s: In[Tile[2, 1, DType.F32]], y: Out[Tile[4, 8, DType.I8]]) -> None:
    pto.store(y, pto.quantize(x, s))


# error[T202]: `pto.quantize`: scale has the wrong shape
#   --> quantize_scale.py:10:18
#      |
#   10 |     pto.store(y, pto.quantize(x, s))
#      |                  ^^^^^^^^^^^^^^^^^^
#    = expected: a number, [1, 1], [4, 1] or [1, 8]
#    = found:    [2, 1]
