"""Two sides of a combine write rows that overlap."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, combine, kernel, pto, workload


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((16, 8), np.float32))


@workload
def upper() -> None:
    scale(x=X[0:4], y=Y[0:4])


@workload
def lower() -> None:
    scale(x=X[2:6], y=Y[2:6])


def mistake() -> None:
    combine(upper(), lower()).compile("interp")


# error[W201]: tasks without an order between them write the same elements of `Y`
#   --> sides_of_a_combine.py:18:23
#      |
#   18 |     scale(x=X[0:4], y=Y[0:4])
#      |                       ^^^^^^
#   --> sides_of_a_combine.py:23:23: written here
#      |
#   23 |     scale(x=X[2:6], y=Y[2:6])
#      |                       ^^^^^^
#    = expected: sides without an order touch different elements, or only read
#    = found:    Y[2:4, 0:8] is written by both
#    = help:     sequential(...) or >> puts the sides in order
