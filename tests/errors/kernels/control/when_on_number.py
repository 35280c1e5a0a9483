"""A branch on a number."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n):
        pto.store(y, x)


# error[T210]: `pto.when` takes a condition, not a number
#   --> when_on_number.py:10:10
#      |
#   10 |     with pto.when(n):
#      |          ^^^^^^^^^^^
#    = expected: a comparison of scalars
#    = found:    n
#    = help:     compare it: n != 0
