"""More leading positions than a kernel writes out."""

from __future__ import annotations

from pto_wsp import DType, In, Tile

F32 = DType.F32


def mistake(x: In[Tile[100, 4, 8, F32]]) -> None:
    pass


# error[K101]: kernel `mistake`: parameter `x`: a tile has too many leading positions
#   --> too_many_tiles.py:10:13
#      |
#   10 | def mistake(x: In[Tile[100, 4, 8, F32]]) -> None:
#      |             ^
#    = expected: at most 64: a kernel's ops are written out for each
#    = found:    Tile[100, 4, 8, f32]: 100
#    = help:     loop over them in the workload, or bind elementwise work as one tile of more rows
