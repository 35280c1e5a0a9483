"""Iterations that accumulate, and read the sum."""

import numpy as np

from pto_wsp import Acc, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def copy(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x)


X, Z, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for k in P(4):
        part[k](x=X[4 * k:4 * k + 4], y=Y)
        copy[k](x=Y, y=Z[4 * k:4 * k + 4])


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write and read the same elements of `Y`
#   --> reads_what_a_neighbour_adds_to.py:24:41
#      |
#   24 |         part[k](x=X[4 * k:4 * k + 4], y=Y)
#      |                                         ^
#   --> reads_what_a_neighbour_adds_to.py:25:19: read here
#      |
#   25 |         copy[k](x=Y, y=Z[4 * k:4 * k + 4])
#      |                   ^
#    = expected: iterations of `k` touch different elements, or only read
#    = found:    Y[0:4, 0:8] is accumulated (sum) where k = 0, and read where k = 1
#    = help:     P.seq(...) runs the iterations of `k` in order; or give `Y` one more dimension, a place for each `k`
