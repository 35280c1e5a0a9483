"""An axis that a tile of rank 3 does not have."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 1, F32]]) -> None:
    pto.store(y, x.sum(axis=3, keepdims=True))


# error[T214]: `sum`: not an axis of the tile
#   --> no_such_axis.py:11:18
#      |
#   11 |     pto.store(y, x.sum(axis=3, keepdims=True))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: -3 .. 2
#    = found:    3 of Tile[4, 16, 64, f32]
