"""A part of a buffer has three axes."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[0, 0, 0] = 1
    pto.store(out, b)


# error[T302]: a tile has two axes
#   --> three_axes.py:8:5
#     |
#   8 |     b[0, 0, 0] = 1
#     |     ^^^^^^^^^^
#    = expected: x[rows, cols]
#    = found:    [0, 0, 0]
