"""A Python number is counted up in a loop."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    count = 0
    for _ in pto.range(n):
        count += 1
    pto.store(y, x * count)


# error[K109]: `count` is read in a loop and then assigned to
#   --> carried_number.py:12:9
#      |
#   12 |         count += 1
#      |         ^^^^^
#    = found:    a body that is traced once: `count` is read as it was before the loop, in every iteration
#    = help:     count with the loop's variable, or keep a [1, 1] buffer; a variable of the loop's own takes another name
