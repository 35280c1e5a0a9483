"""Tiles of two dtypes."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], n: In[Tile[4, 16, 64, DType.I32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.store(y, x * n)


# error[T203]: `pto.mul`: operands of different dtypes
#   --> dtypes.py:11:18
#      |
#   11 |     pto.store(y, x * n)
#      |                  ^^^^^
#    = expected: one dtype
#    = found:    Tile[4, 16, 64, f32] and Tile[4, 16, 64, i32]
#    = help:     convert one of them, e.g. pto.cast(x, DType.F32)
