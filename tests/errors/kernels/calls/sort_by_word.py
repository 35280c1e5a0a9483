"""Which way to sort, as a word."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.sort(x, "descending"))


# error[T207]: `pto.sort`: descending is True or False
#   --> sort_by_word.py:10:18
#      |
#   10 |     pto.store(y, pto.sort(x, "descending"))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    'descending'
