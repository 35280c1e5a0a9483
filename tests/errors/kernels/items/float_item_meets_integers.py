"""A float item meets a tile of integers."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(pto.cast(x, DType.F32), 0, 0))


# error[T203]: `pto.mul`: a float meets a tile of i32
#   --> float_item_meets_integers.py:7:20
#     |
#   7 |     pto.store(out, x * pto.item(pto.cast(x, DType.F32), 0, 0))
#     |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a number that i32 holds
#    = found:    item_0
#    = help:     write a whole number, or pto.cast the tile to a float
