"""A loop walks what is no axis."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4.0):
        scale[b](x=X[0], y=Y[0])


def mistake() -> None:
    program()


# error[W106]: this is not an axis
#   --> no_axis.py:18:14
#      |
#   18 |     for b in P(4.0):
#      |              ^^^^^^
#    = expected: Dense[N](), DenseDyn(n), a row of a Ragged or Sparse, a range, a whole number, or a scalar expression
#    = found:    float: 4.0
