"""A tile as an index."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(x, x[0, 0], 0))


# error[T209]: `pto.item`: the row: not a whole number
#   --> tile_index.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(x, x[0, 0], 0))
#     |                        ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    TileValue: <Tile[1, 1, i32]>
#    = help:     an element as a scalar: pto.item(x, row, col)
