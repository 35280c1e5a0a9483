"""A scalar of the kernel is changed in a loop."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    left = n * 2
    for _ in pto.range(n):
        pto.store(y, x * left)
        left = left - 1


# error[K109]: `left` is read in a loop and then assigned to
#   --> carried_scalar.py:13:9
#      |
#   13 |         left = left - 1
#      |         ^^^^
#    = found:    a body that is traced once: `left` is read as it was before the loop, in every iteration
#    = help:     count with the loop's variable, or keep a [1, 1] buffer; a variable of the loop's own takes another name
