"""The iterations of a loop write the same rows."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 32, 128), np.float32)), Tensor(np.zeros((32, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        for t in P(2):
            scale[b, t](x=X[b, 16 * t:16 * t + 16], y=Y[16 * t:16 * t + 16])


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write the same elements of `Y`
#   --> no_index_of_the_outer_loop.py:20:55
#      |
#   20 |             scale[b, t](x=X[b, 16 * t:16 * t + 16], y=Y[16 * t:16 * t + 16])
#      |                                                       ^^^^^^^^^^^^^^^^^^^^^
#    = expected: iterations of `b` touch different elements, or only read
#    = found:    Y[0:16, 0:128] is written where b = 0, t = 0, and again where b = 1, t = 0
#    = help:     P.seq(...) runs the iterations of `b` in order; or give `Y` one more dimension, a place for each `b`
