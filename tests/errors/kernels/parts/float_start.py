"""A part of a buffer starts at a fraction."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[n / 2:n / 2 + 3, 0:4] = x
    pto.store(out, b)


# error[T209]: buffer `b`: the first row: not a whole number
#   --> float_start.py:8:5
#     |
#   8 |     b[n / 2:n / 2 + 3, 0:4] = x
#     |     ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    n / 2
