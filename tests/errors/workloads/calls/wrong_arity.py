"""A call leaves an argument out."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b])


def mistake() -> None:
    program()


# error[T101]: kernel `scale` does not take these arguments
#   --> wrong_arity.py:19:9
#      |
#   19 |         scale[b](x=X[b])
#      |         ^^^^^^^^^^^^^^^^
#    = expected: scale(x: In[Tile[16, 128, f32]], y: Out[Tile[16, 128, f32]])
#    = found:    `y` missing
