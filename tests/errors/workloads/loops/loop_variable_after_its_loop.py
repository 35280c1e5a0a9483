"""A loop variable is used after its loop."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])
    scale(x=X[0], y=Y[b])


def mistake() -> None:
    program()


# error[W103]: loop variable `b` is used outside its loop
#   --> loop_variable_after_its_loop.py:20:21
#      |
#   20 |     scale(x=X[0], y=Y[b])
#      |                     ^^^^
#    = help:     move the call into `for b in P(...)`
