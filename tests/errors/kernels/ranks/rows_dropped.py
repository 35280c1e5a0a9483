"""A reduction of rows that drops them."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 1, F32]]) -> None:
    pto.store(y, x.max(axis=-1))


# error[T214]: `max`: rows and columns of a tile in a kernel stay, with an extent of 1
#   --> rows_dropped.py:11:18
#      |
#   11 |     pto.store(y, x.max(axis=-1))
#      |                  ^^^^^^^^^^^^^^
#    = expected: keepdims=True
#    = found:    axis=-1 of Tile[4, 16, 64, f32], without it
#    = help:     a reduction along leading axes alone may drop them
