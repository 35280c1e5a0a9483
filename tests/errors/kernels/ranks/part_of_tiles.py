"""Some rows of each buffer written."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    acc = pto.alloc(x.shape, F32, init=0)
    acc[:, 0:2] = 1
    pto.store(y, x + acc)


# error[T215]: buffer `acc` is written as whole tiles
#   --> part_of_tiles.py:12:5
#      |
#   12 |     acc[:, 0:2] = 1
#      |     ^^^^^^^^^^^
#    = expected: [b] = value, or [b, :, :] = value
#    = found:    [:, 0:2] = ...
#    = help:     pto.store(x[b], value, (row, col)) writes a piece of an Out or InOut parameter
