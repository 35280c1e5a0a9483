"""A part of a buffer is written with a step."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[0:6:2, 0:4] = x
    pto.store(out, b)


# error[T302]: buffer `b`: a part that is written has no step
#   --> with_a_step.py:8:5
#     |
#   8 |     b[0:6:2, 0:4] = x
#     |     ^^^^^^^^^^^^^
#    = found:    [0:6:2, 0:4]
#    = help:     write its rows or columns one by one
