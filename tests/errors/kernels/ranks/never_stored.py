"""An Out parameter of rank 3 that nothing is stored to."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.exp(x)


# error[K102]: kernel `mistake`: Out parameter `y` is never stored
#   --> never_stored.py:10:42
#      |
#   10 | def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
#      |                                          ^
#    = help:     pto.store(y, value), or drop the parameter
