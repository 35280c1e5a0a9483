"""Sides that accumulate into a tile and write it."""

import numpy as np

from pto_wsp import Acc, DType, In, Out, Tensor, Tile, combine, kernel, pto, workload


@kernel
def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def copy(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x)


X, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))


@workload
def adds() -> None:
    part(x=X[:4], y=Y)


@workload
def clears() -> None:
    copy(x=X[4:8], y=Y)


def mistake() -> None:
    combine(adds(), clears()).compile("interp")


# error[W201]: tasks without an order between them write the same elements of `Y`
#   --> writes_what_a_neighbour_adds_to.py:23:21
#      |
#   23 |     part(x=X[:4], y=Y)
#      |                     ^
#   --> writes_what_a_neighbour_adds_to.py:28:22: written here
#      |
#   28 |     copy(x=X[4:8], y=Y)
#      |                      ^
#    = expected: sides without an order touch different elements, or only read
#    = found:    Y[0:4, 0:8] is accumulated (sum) by one and written by the other
#    = help:     sequential(...) or >> puts the sides in order
