"""More indices than axes."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x[0, 1, 2, 3])


# error[T215]: parameter `x` has 3 axes
#   --> four_indices.py:11:18
#      |
#   11 |     pto.store(y, x[0, 1, 2, 3])
#      |                  ^^^^^^^^^^^^^
#    = expected: at most 3 indices and one ...
#    = found:    [0, 1, 2, 3]
