"""A mask of one element as a condition."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    with pto.when(x[0, 0] > 0):
        pto.store(out, x)


# error[T210]: `pto.when` takes a condition on scalars, not on the elements of a tile
#   --> when_of_tile.py:7:10
#     |
#   7 |     with pto.when(x[0, 0] > 0):
#     |          ^^^^^^^^^^^^^^^^^^^^^
#    = expected: a comparison of scalars, e.g. n > 4
#    = found:    <Tile[1, 1, bool]>
#    = help:     one element as a scalar: pto.item(x, row, col) > 0; element by element: pto.where(mask, a, b)
