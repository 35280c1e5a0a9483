"""A row of a tile is picked by an item."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x[pto.item(x, 0, 0)])


# error[T302]: a row of a tile that is known only at run time
#   --> run_time_slice.py:7:20
#     |
#   7 |     pto.store(out, x[pto.item(x, 0, 0)])
#     |                    ^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number
#    = found:    Symbolic(item_0)
#    = help:     offsets into a tile are constants; pto.load(T, (row, col), shape=(r, c)) and pto.item(x, row, col) read anywhere
