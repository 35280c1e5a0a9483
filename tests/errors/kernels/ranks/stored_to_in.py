"""A part of an In parameter written."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.store(y, x)
    x[1] = 0


# error[K106]: parameter `x[1]` is In: it cannot be stored to
#   --> stored_to_in.py:12:5
#      |
#   12 |     x[1] = 0
#      |     ^^^^
#    = expected: Out or InOut
#    = found:    declared at stored_to_in.py:10:13
#    = help:     declare it InOut, if the kernel may change it
