"""A tile of rank 3 stored to one of two axes."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x)


# error[T215]: parameter `y`: the value has more axes
#   --> stored_rank.py:11:5
#      |
#   11 |     pto.store(y, x)
#      |     ^^^^^^^^^^^^^^^
#    = expected: Tile[16, 64, f32]
#    = found:    Tile[4, 16, 64, f32]
#    = help:     take one of its tiles: x[0]
