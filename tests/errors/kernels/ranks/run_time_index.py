"""A leading index that is known only at run time."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    for b in pto.range(4):
        pto.store(y, x[b])


# error[T215]: axis 0 of the tile is indexed by a scalar, known only at run time
#   --> run_time_index.py:12:22
#      |
#   12 |         pto.store(y, x[b])
#      |                      ^^^^
#    = expected: a whole number
#    = found:    Symbolic(b)
#    = help:     unroll the loop with Python's range, `for b in range(4)`; or index the view in the workload, and give the kernel one tile
