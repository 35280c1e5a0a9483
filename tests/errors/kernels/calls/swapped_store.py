"""The arguments of store are exchanged."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(x + 1, y)


# error[T205]: `pto.store` writes to a parameter
#   --> swapped_store.py:10:5
#      |
#   10 |     pto.store(x + 1, y)
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: an Out or InOut parameter first, then the value
#    = found:    <Tile[4, 8, f32]>
#    = help:     exchange the arguments
