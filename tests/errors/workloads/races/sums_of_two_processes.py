"""Two processes accumulate into one tile."""

import numpy as np

from pto_wsp import Acc, DType, In, P, Tensor, Tile, kernel, pto, workload


@kernel
def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    with P.pipe():
        for k in P.seq(2):
            part[k](x=X[4 * k:4 * k + 4], y=Y)
        for k in P.seq(2):
            part[k](x=X[8 + 4 * k:12 + 4 * k], y=Y)


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write the same elements of `Y`
#   --> sums_of_two_processes.py:20:45
#      |
#   20 |             part[k](x=X[4 * k:4 * k + 4], y=Y)
#      |                                             ^
#   --> sums_of_two_processes.py:22:50: accumulated (sum) here
#      |
#   22 |             part[k](x=X[8 + 4 * k:12 + 4 * k], y=Y)
#      |                                                  ^
#    = expected: processes touch different elements, or only read
#    = found:    Y[0:4, 0:8] is accumulated (sum) where k = 0, and again where k = 0
#    = help:     send a token after the first task, and receive it before the second
