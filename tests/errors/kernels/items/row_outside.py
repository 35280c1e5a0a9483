"""An item of a row that the tile does not have."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(x, 3, 0))


# error[T301]: the tile has no row 3
#   --> row_outside.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(x, 3, 0))
#     |                        ^^^^^^^^^^^^^^^^^
#    = expected: -3 .. 2
#    = found:    3
