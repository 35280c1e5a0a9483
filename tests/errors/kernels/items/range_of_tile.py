"""A tile as the bound of a loop."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    for _ in pto.range(x[0, 0]):
        pto.store(out, x)


# error[T209]: `pto.range`: the stop: not a whole number
#   --> range_of_tile.py:7:14
#     |
#   7 |     for _ in pto.range(x[0, 0]):
#     |              ^^^^^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    TileValue: <Tile[1, 1, i32]>
#    = help:     an element as a scalar: pto.item(x, row, col)
