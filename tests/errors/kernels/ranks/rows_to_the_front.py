"""Rows as a leading axis."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[16, 4, 64, F32]]) -> None:
    pto.store(y, x.transpose(1, 0, 2))


# error[T214]: `transpose`: leading axes stay before rows and columns
#   --> rows_to_the_front.py:11:18
#      |
#   11 |     pto.store(y, x.transpose(1, 0, 2))
#      |                  ^^^^^^^^^^^^^^^^^^^^
#    = expected: an order of all 3 axes, of which the last two are rows and columns
#    = found:    (1, 0, 2) of Tile[4, 16, 64, f32]
#    = help:     x.mT exchanges the last two axes; pto.concat(x[0], x[1], axis=0) joins tiles
