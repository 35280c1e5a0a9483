"""A part of a buffer leaves it."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[4:7, 0:4] = x
    pto.store(out, b)


# error[T301]: the rows of a tile: the slice leaves it
#   --> outside.py:8:5
#     |
#   8 |     b[4:7, 0:4] = x
#     |     ^^^^^^^^^^^
#    = expected: bounds in -6 .. 6
#    = found:    4:7
