"""An op that does not exist."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.maximun(x, 0))


# error[T211]: `pto` has no `maximun`
#   --> unknown_op.py:10:18
#      |
#   10 |     pto.store(y, pto.maximun(x, 0))
#      |                  ^^^^^^^^^^^
#    = help:     did you mean pto.maximum?
