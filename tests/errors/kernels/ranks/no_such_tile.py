"""A leading index out of range."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x[4])


# error[T301]: axis 0 of the tile has no position 4
#   --> no_such_tile.py:11:18
#      |
#   11 |     pto.store(y, x[4])
#      |                  ^^^^
#    = expected: -4 .. 3
#    = found:    4
