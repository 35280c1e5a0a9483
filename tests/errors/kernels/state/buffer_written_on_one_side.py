"""A buffer that only one side of a branch has written is read."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.F32)
    with pto.when(n > 2):
        acc[:] = x
    pto.store(y, acc)


# error[K106]: buffer `acc` is read before it is certainly written
#   --> buffer_written_on_one_side.py:13:5
#      |
#   13 |     pto.store(y, acc)
#      |     ^^^^^^^^^^^^^^^^^
#    = help:     give it an init, e.g. pto.alloc(..., init=0)
