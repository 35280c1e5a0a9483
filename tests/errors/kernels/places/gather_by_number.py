"""One row by its number."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 8, DType.F32]], n: Scalar[DType.I32]) -> None:
    pto.store(y, pto.gather(table, n, cols=8))


# error[T213]: `pto.gather`: the index is a tile
#   --> gather_by_number.py:11:18
#      |
#   11 |     pto.store(y, pto.gather(table, n, cols=8))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a tile [N, 1] of i32 or i64
#    = found:    Symbolic(n)
#    = help:     one row alone is pto.load(T, (row, 0), shape=(1, n))
