"""A branch on a mask."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(x > 0):
        pto.store(y, x)


# error[T210]: `pto.when` takes a condition on scalars, not on the elements of a tile
#   --> when_on_tile.py:10:10
#      |
#   10 |     with pto.when(x > 0):
#      |          ^^^^^^^^^^^^^^^
#    = expected: a comparison of scalars, e.g. n > 4
#    = found:    <Tile[4, 8, bool]>
#    = help:     one element as a scalar: pto.item(x, row, col) > 0; element by element: pto.where(mask, a, b)
