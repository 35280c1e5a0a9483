"""Tasks of one loop add to a tile, and take the maximum with it."""

import numpy as np

from pto_wsp import Acc, DType, In, P, Tensor, Tile, kernel, pto, workload


@kernel
def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def highest(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32], "max"]) -> None:
    pto.store(y, x)


X, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for k in P(4):
        part[k](x=X[4 * k:4 * k + 4], y=Y)
        highest[k](x=X[4 * k:4 * k + 4], y=Y)


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write the same elements of `Y`
#   --> sum_and_maximum_of_one_tile.py:24:41
#      |
#   24 |         part[k](x=X[4 * k:4 * k + 4], y=Y)
#      |                                         ^
#   --> sum_and_maximum_of_one_tile.py:25:44: accumulated (max) here
#      |
#   25 |         highest[k](x=X[4 * k:4 * k + 4], y=Y)
#      |                                            ^
#    = expected: iterations of `k` touch different elements, or only read
#    = found:    Y[0:4, 0:8] is accumulated (sum) where k = 0, and accumulated (max) where k = 1
#    = help:     P.seq(...) runs the iterations of `k` in order; or give `Y` one more dimension, a place for each `k`
