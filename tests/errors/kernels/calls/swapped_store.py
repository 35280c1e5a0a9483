"""The arguments of store are exchanged."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(x + 1, y)


# error[T213]: `pto.store` writes to a parameter
#   --> swapped_store.py:10:5
#      |
#   10 |     pto.store(x + 1, y)
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: an Out or InOut parameter first, then the value
#    = found:    <Tile[4, 8, f32]>
#    = help:     exchange the arguments
