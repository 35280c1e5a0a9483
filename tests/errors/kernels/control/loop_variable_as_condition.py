"""A condition on the variable of a loop that has ended."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    for j in pto.range(n):
        pto.store(y, x * j)
    with pto.when(j > 2):
        pto.store(y, x)


# error[W103]: `j` is used where its loop does not run
#   --> loop_variable_as_condition.py:12:10
#      |
#   12 |     with pto.when(j > 2):
#      |          ^^^^^^^^^^^^^^^
#    = help:     move the use into the loop
