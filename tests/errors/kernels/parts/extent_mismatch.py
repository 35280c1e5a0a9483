"""A part of a buffer takes a tile of other extents."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[0:2, 0:4] = x
    pto.store(out, b)


# error[T202]: buffer `b`: the value has another shape
#   --> extent_mismatch.py:8:5
#     |
#   8 |     b[0:2, 0:4] = x
#     |     ^^^^^^^^^^^
#    = expected: Tile[2, 4, i32]
#    = found:    Tile[3, 4, i32]
