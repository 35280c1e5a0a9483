"""A part that starts at a scalar has no rows."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[n:n, 0:4] = 1
    pto.store(out, b)


# error[T302]: buffer `b`: the part has 0 rows, and their number is >= 1 and known when the kernel is traced
#   --> empty_part.py:8:5
#     |
#   8 |     b[n:n, 0:4] = 1
#     |     ^^^^^^^^^^^
#    = found:    [Symbolic(n):Symbolic(n), 0:4]
#    = help:     give it a fixed extent: b[i * 16:(i + 1) * 16], b[i:i + 4]
