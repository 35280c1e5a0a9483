"""Rows that do not fit, under leading axes that do."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], w: In[Tile[4, 8, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.store(y, x * w)


# error[T202]: `pto.mul`: the operands' shapes do not fit
#   --> rows_of_each.py:11:18
#      |
#   11 |     pto.store(y, x * w)
#      |                  ^^^^^
#    = expected: equal shapes; [R, 1], [1, C] and [1, 1] broadcast to [R, C]
#    = found:    Tile[4, 16, 64, f32] and Tile[4, 8, 64, f32]
