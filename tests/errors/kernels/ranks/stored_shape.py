"""A value of too few tiles."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.store(y, x[:2])


# error[T215]: parameter `y`: the value has another shape
#   --> stored_shape.py:11:5
#      |
#   11 |     pto.store(y, x[:2])
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: Tile[4, 16, 64, f32]
#    = found:    Tile[2, 16, 64, f32]
