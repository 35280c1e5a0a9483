"""The extent of a part that is read is known only at run time."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[:] = pto.colsum(x[0:n])
    pto.store(out, b)


# error[T302]: a tile: the part has n rows, and their number is >= 1 and known when the kernel is traced
#   --> read_extent_of_the_run.py:8:23
#     |
#   8 |     b[:] = pto.colsum(x[0:n])
#     |                       ^^^^^^
#    = found:    [0:Symbolic(n)]
#    = help:     give it a fixed extent: b[i * 16:(i + 1) * 16], b[i:i + 4]
