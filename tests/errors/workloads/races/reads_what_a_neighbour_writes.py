"""A task reads the rows that the same task of the iteration before writes."""

import numpy as np

from pto_wsp import DenseDyn, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def step(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x + 1)


X = Tensor(np.zeros((17, 8), np.float32))
n = DenseDyn(16)


@workload
def program() -> None:
    for i in P(n):
        step[i](x=X[i], y=X[i + 1])


def mistake() -> None:
    program().compile("cpu_sim")


# error[W201]: tasks without an order between them write and read the same elements of `X`
#   --> reads_what_a_neighbour_writes.py:20:27
#      |
#   20 |         step[i](x=X[i], y=X[i + 1])
#      |                           ^^^^^^^^
#   --> reads_what_a_neighbour_writes.py:20:19: read here
#      |
#   20 |         step[i](x=X[i], y=X[i + 1])
#      |                   ^^^^
#    = expected: iterations of `i` touch different elements, or only read
#    = found:    X[1, 0:8] is written where i = 0, and read where i = 1
#    = help:     P.seq(...) runs the iterations of `i` in order; or give `X` one more dimension, a place for each `i`
