"""Elements of a buffer are written by a mask."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[b > 0] = 1
    pto.store(out, b)


# error[T302]: buffer `b`: elements are not selected by a tile
#   --> by_a_mask.py:8:5
#     |
#   8 |     b[b > 0] = 1
#     |     ^^^^^^^^
#    = found:    [<Tile[6, 8, bool]>]
#    = help:     choose element by element: b[:] = pto.where(mask, value, b)
