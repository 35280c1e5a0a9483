"""The place of the largest tile by tile."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[1, 16, 64, DType.I32]]) -> None:
    pto.store(y, x.argmax(axis=0, keepdims=True))


# error[T214]: `argmax` works along rows and columns, not along a leading axis
#   --> argmax_of_tiles.py:11:18
#      |
#   11 |     pto.store(y, x.argmax(axis=0, keepdims=True))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: axis 2 (or -1) or 1 (or -2)
#    = found:    axis=0 of Tile[4, 16, 64, f32]
#    = help:     sum, prod, mean, max, min, any and all reduce leading axes: a softmax is e / e.sum(axis=0, keepdims=True)
