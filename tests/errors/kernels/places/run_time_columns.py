"""How many columns is known only at run time."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(table: In[Tensor], index: In[Tile[4, 1, DType.I32]], y: Out[Tile[4, 8, DType.F32]], n: Scalar[DType.I32]) -> None:
    pto.store(y, pto.gather(table, index, cols=(0, n)))


# error[T207]: `pto.gather`: cols: the number of columns is >= 1 and known when the kernel is traced
#   --> run_time_columns.py:11:18
#      |
#   11 |     pto.store(y, pto.gather(table, index, cols=(0, n)))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: (first, count), or count
#    = found:    (0, Symbolic(n))
