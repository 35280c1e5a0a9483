"""One kernel reads, where a symbol is large enough, what another writes in another iteration."""

import numpy as np

from pto_wsp import DType, In, Out, P, Symbol, Tensor, Tile, kernel, pto, workload


@kernel
def first(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x + 1)


@kernel
def second(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y, Z = (Tensor(np.zeros((16, 8), np.float32)) for _ in range(3))
n = Symbol("n")


@workload
def program() -> None:
    for i in P(n):
        first[i](x=X[i], y=Y[i])
        second[i](x=Y[15 - i], y=Z[i])


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write and read the same elements of `Y`
#   --> two_kernels_of_a_loop.py:25:28
#      |
#   25 |         first[i](x=X[i], y=Y[i])
#      |                            ^^^^
#   --> two_kernels_of_a_loop.py:26:21: read here
#      |
#   26 |         second[i](x=Y[15 - i], y=Z[i])
#      |                     ^^^^^^^^^
#    = expected: iterations of `i` touch different elements, or only read
#    = found:    Y[7, 0:8] is written where i = 7, and read where i = 8
#    = help:     P.seq(...) runs the iterations of `i` in order; or give `Y` one more dimension, a place for each `i`
#    = note:     for example with n = 9
