"""A stack of unlike tiles."""

from __future__ import annotations

import numpy as np

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[16, 64, F32]], y: Out[Tile[2, 16, 64, F32]]) -> None:
    pto.store(y, np.stack([x, x[:8]]))


# error[T215]: `pto.stack`: tiles of different types
#   --> unlike_tiles.py:13:18
#      |
#   13 |     pto.store(y, np.stack([x, x[:8]]))
#      |                  ^^^^^^^^^^^^^^^^^^^^
#    = expected: one type
#    = found:    Tile[16, 64, f32] and Tile[8, 64, f32]
