"""A part of a buffer takes a tile of another dtype."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[0:3, 0:4] = pto.cast(x, DType.F32)
    pto.store(out, b)


# error[T203]: buffer `b`: the value has another dtype
#   --> another_dtype.py:8:5
#     |
#   8 |     b[0:3, 0:4] = pto.cast(x, DType.F32)
#     |     ^^^^^^^^^^^
#    = expected: Tile[3, 4, i32]
#    = found:    Tile[3, 4, f32]
#    = help:     convert it: pto.cast(value, DType.I32)
