"""A tile has no valid part to pick from."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.gather(y, index, axis=0, valid=2))


# error[T207]: `pto.gather`: cols, valid and fill are for rows of a Tensor parameter
#   --> valid_of_a_tile.py:11:18
#      |
#   11 |     pto.store(y, pto.gather(y, index, axis=0, valid=2))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a Tensor parameter first
#    = help:     of a tile take part after: x[:, 0:64]
