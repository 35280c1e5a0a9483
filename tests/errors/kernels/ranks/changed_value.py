"""A value of rank 3 changed in place."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    z = x * 2
    z[1] = 0
    pto.store(y, z)


# error[K106]: a tile value never changes
#   --> changed_value.py:12:5
#      |
#   12 |     z[1] = 0
#      |     ^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(x.shape, x.dtype), then acc[:] = ...
