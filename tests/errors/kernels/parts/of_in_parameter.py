"""A part of an In parameter is written."""

from pto_wsp import DType, In, Out, Scalar, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], n: Scalar[DType.I32], out: Out[Tile[6, 8, DType.I32]]):
    b = pto.alloc((6, 8), DType.I32, init=0)
    x[0] = 1
    pto.store(out, b)


# error[K106]: parameter `x` is In: it cannot be stored to
#   --> of_in_parameter.py:8:5
#     |
#   8 |     x[0] = 1
#     |     ^^^^
#    = expected: Out or InOut
#    = found:    declared at of_in_parameter.py:6:13
#    = help:     declare it InOut, if the kernel may change it
