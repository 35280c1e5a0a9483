"""A part of a tile value is written."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    y = x + 1
    y[0] = 1
    pto.store(out, b)


# error[K106]: a tile value never changes
#   --> of_a_value.py:9:5
#     |
#   9 |     y[0] = 1
#     |     ^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(x.shape, x.dtype), then acc[:] = ...
