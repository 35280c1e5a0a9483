"""A part of an Out parameter starts at a scalar."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    out[n] = 1
    pto.store(out, b)


# error[T209]: parameter `out`: a part of a Tile parameter starts where the trace knows it
#   --> of_parameter_at_run_time.py:8:5
#     |
#   8 |     out[n] = 1
#     |     ^^^^^^
#    = expected: whole numbers
#    = found:    n, 0
#    = help:     write the part of a buffer, b = pto.alloc(shape, dtype, init=0), and store the buffer
