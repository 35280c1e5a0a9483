"""A shape of another size."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 8, 64, F32]]) -> None:
    pto.store(y, x.reshape(4, 8, 64))


# error[T215]: `pto.reshape`: [4, 8, 64] has another number of elements
#   --> reshaped.py:11:18
#      |
#   11 |     pto.store(y, x.reshape(4, 8, 64))
#      |                  ^^^^^^^^^^^^^^^^^^^
#    = expected: 4096 elements
#    = found:    2048, from Tile[4, 16, 64, f32]
