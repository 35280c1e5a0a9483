"""A branch waits for a task of another one."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        with P.when(b > 1):
            first = scale[b](x=X[b], y=Y[b])
        with P.otherwise():
            scale[b](x=X[b], y=Y[b], after=[first])


def mistake() -> None:
    program()


# error[W103]: after= names a task of another branch of the same choice: TaskHandle(scale)
#   --> handle_of_another_branch.py:22:13
#      |
#   22 |             scale[b](x=X[b], y=Y[b], after=[first])
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     only one of the branches runs, so there is nothing to wait for
