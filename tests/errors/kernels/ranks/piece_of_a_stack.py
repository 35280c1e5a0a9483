"""A piece at an offset of two axes."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[8, 64, F32]]) -> None:
    pto.store(y, pto.load(x, (8, 0), shape=(8, 64)))


# error[T215]: `pto.load` moves a piece of one tile
#   --> piece_of_a_stack.py:11:18
#      |
#   11 |     pto.store(y, pto.load(x, (8, 0), shape=(8, 64)))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: two axes
#    = found:    <parameter `x`: Tile[4, 16, 64, f32]>
#    = help:     pick a tile first: pto.load(x[0], ...)
