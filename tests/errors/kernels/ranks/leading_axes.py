"""Leading axes that do not broadcast."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], w: In[Tile[3, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.store(y, x + w)


# error[T215]: `pto.add`: the operands' leading axes do not fit
#   --> leading_axes.py:11:18
#      |
#   11 |     pto.store(y, x + w)
#      |                  ^^^^^
#    = expected: equal extents, or 1; a tile [R, C] meets all
#    = found:    Tile[4, 16, 64, f32] and Tile[3, 16, 64, f32]
