"""A buffer of which a tile was never written."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    acc = pto.alloc(x.shape, F32)
    acc[0] = x[0]
    pto.store(y, acc)


# error[K106]: buffer `acc[1]` is read before it is certainly written
#   --> unwritten_part.py:13:5
#      |
#   13 |     pto.store(y, acc)
#      |     ^^^^^^^^^^^^^^^^^
#    = help:     give it an init, e.g. pto.alloc(..., init=0)
