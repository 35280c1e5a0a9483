"""Inner extents of products that differ."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], w: In[Tile[4, 32, 64, F32]], y: Out[Tile[4, 16, 32, F32]]) -> None:
    pto.store(y, x @ w)


# error[T202]: `pto.matmul`: 64 columns meet 32 rows
#   --> products.py:11:18
#      |
#   11 |     pto.store(y, x @ w)
#      |                  ^^^^^
#    = expected: [M, K] @ [K, N]
#    = found:    Tile[4, 16, 64, f32] @ Tile[4, 32, 64, f32]
#    = help:     transpose the second: b.mT
