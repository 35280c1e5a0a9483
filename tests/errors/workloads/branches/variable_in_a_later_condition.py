"""A condition names a loop that has ended."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])
    with P.when(b > 1):
        scale(x=X[0], y=Y[0])


def mistake() -> None:
    program()


# error[W103]: loop variable `b` is used outside its loop
#   --> variable_in_a_later_condition.py:20:10
#      |
#   20 |     with P.when(b > 1):
#      |          ^^^^^^^^^^^^^
#    = help:     move the call into `for b in P(...)`
