"""x.T, which NumPy takes for all axes."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 64, 16, F32]]) -> None:
    pto.store(y, x.T)


# error[T214]: `x.T` reverses all 3 axes in NumPy, and rows stay within their tile
#   --> all_axes_reversed.py:11:18
#      |
#   11 |     pto.store(y, x.T)
#      |                  ^^^
#    = expected: rows and columns exchanged
#    = found:    <parameter `x`: Tile[4, 16, 64, f32]>
#    = help:     x.mT exchanges the last two axes
