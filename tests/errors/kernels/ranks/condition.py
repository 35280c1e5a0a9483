"""A branch on a tile of rank 3."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    with pto.when(x > 0):
        pto.store(y, x)


# error[T210]: `pto.when` takes a condition on scalars, not on the elements of a tile
#   --> condition.py:11:10
#      |
#   11 |     with pto.when(x > 0):
#      |          ^^^^^^^^^^^^^^^
#    = expected: a comparison of scalars, e.g. n > 4
#    = found:    <Tile[4, 16, 64, bool]>
#    = help:     one element as a scalar: pto.item(x, row, col) > 0; element by element: pto.where(mask, a, b)
