"""A branch is asked for and not opened."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        P.when(b > 1)
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[K103]: `P.when(b > 1)` stands without a `with`
#   --> when_without_with.py:19:9
#      |
#   19 |         P.when(b > 1)
#      |         ^^^^^^^^^^^^^
#    = expected: with P.when(b > 1): ...
#    = found:    a statement of its own
