"""A condition is a whole row."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        with P.when(X[b]):
            scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[T206]: `X[b]` is a view with 1 dimensions, not a scalar
#   --> condition_of_a_view.py:19:14
#      |
#   19 |         with P.when(X[b]):
#      |              ^^^^^^^^^^^^
#    = help:     pick one element: one index a dimension
