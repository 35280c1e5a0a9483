"""A value made in a loop is used after it."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    for j in pto.range(4):
        t = x * j
    pto.store(y, t)


# error[K104]: a tile value Tile[4, 8, f32] was made inside a loop that has ended
#   --> escaped_value.py:12:5
#      |
#   12 |     pto.store(y, t)
#      |     ^^^^^^^^^^^^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(shape, dtype, init=0) before the loop, acc[:] = value in it
#    = note:     it was made at escaped_value.py:11:13
