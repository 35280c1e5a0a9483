"""A run binds a name that the program does not have."""

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
    program().compile(target="interp").run(Z=np.zeros((4, 16, 128), np.float32))


# error[R102]: the program has nothing called `Z` to bind
#   --> rebind_of_unknown_name.py:23:5
#      |
#   23 |     program().compile(target="interp").run(Z=np.zeros((4, 16, 128), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of X, Y
#    = help:     a Dense axis is fixed; DenseDyn(n) makes one that can be bound
