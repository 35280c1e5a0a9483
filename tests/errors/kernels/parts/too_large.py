"""A part that starts at a scalar has more rows than the buffer."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[n:n + 7, 0:4] = 1
    pto.store(out, b)


# error[T301]: buffer `b`: the part leaves it
#   --> too_large.py:8:5
#     |
#   8 |     b[n:n + 7, 0:4] = 1
#     |     ^^^^^^^^^^^^^^^
#    = expected: at most 6 rows
#    = found:    7
