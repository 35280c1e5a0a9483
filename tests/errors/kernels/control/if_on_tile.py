# ruff: noqa: E501
"""Python decides on a mask."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    if x > 0:
        pto.store(y, x)


# error[K103]: bool of a tile, whose elements are known only at run time
#   --> if_on_tile.py:11:8
#      |
#   11 |     if x > 0:
#      |        ^^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <Tile[4, 8, bool]>
#    = help:     if, while, and, or, not and chained comparisons decide while the body is traced; choose elements with pto.where(mask, a, b), and join masks with &, | and ~
