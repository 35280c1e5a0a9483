"""A run binds an array of another rank."""

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


def mistake() -> None:
    program().compile(target="interp").run(X=np.zeros((64, 128), np.float32))


# error[R113]: tensor `X` is bound to an array of another rank
#   --> rebind_of_another_rank.py:23:5
#      |
#   23 |     program().compile(target="interp").run(X=np.zeros((64, 128), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 3 dimensions, as [4, 16, 128]
#    = found:    2, [64, 128]
