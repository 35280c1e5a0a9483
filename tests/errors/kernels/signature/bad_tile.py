"""A Tile without a dtype."""

from __future__ import annotations

from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In


def mistake(x: In[Tile[4, 8]]) -> None:
    pass


# error[K101]: kernel `mistake`: parameter `x`: Tile takes rows, columns and a dtype
#   --> bad_tile.py:9:13
#     |
#   9 | def mistake(x: In[Tile[4, 8]]) -> None:
#     |             ^
#    = expected: Tile[rows, cols, dtype] with whole numbers >= 1, or names, and a DType
#    = found:    Tile[(4, 8)]
