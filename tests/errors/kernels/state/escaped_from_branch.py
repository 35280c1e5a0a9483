"""A value made in a branch is used after it."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    t = x * 2
    with pto.when(n > 2):
        t = x * 3
    pto.store(y, t)


# error[K104]: a tile value Tile[4, 8, f32] was made inside a branch that has ended
#   --> escaped_from_branch.py:13:5
#      |
#   13 |     pto.store(y, t)
#      |     ^^^^^^^^^^^^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(shape, dtype, init=0) before the branch, acc[:] = value in it
#    = note:     it was made at escaped_from_branch.py:12:13
