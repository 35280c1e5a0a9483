"""A value made in one side of a branch is used in the other."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 2):
        t = x * 3
        pto.store(y, t)
    with pto.otherwise():
        pto.store(y, t + 1)


# error[K104]: a tile value Tile[4, 8, f32] was made inside a branch that has ended
#   --> other_side_value.py:14:22
#      |
#   14 |         pto.store(y, t + 1)
#      |                      ^^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(shape, dtype, init=0) before the branch, acc[:] = value in it
#    = note:     it was made at other_side_value.py:11:13
