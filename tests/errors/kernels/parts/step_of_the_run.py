"""A part that starts at a scalar has a step."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    b[n:n + 6:2, 0:4] = x
    pto.store(out, b)


# error[T302]: buffer `b`: a part with a start of the run has no step
#   --> step_of_the_run.py:8:5
#     |
#   8 |     b[n:n + 6:2, 0:4] = x
#     |     ^^^^^^^^^^^^^^^^^
#    = found:    [Symbolic(n):Symbolic(n + 6):2, 0:4]
#    = help:     gather picks rows and columns one by one
