"""A condition is a float."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        with P.when(X[b, 0]):
            scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[T210]: `P.when` takes a condition
#   --> condition_of_a_float.py:19:14
#      |
#   19 |         with P.when(X[b, 0]):
#      |              ^^^^^^^^^^^^^^^
#    = expected: a comparison, a truth value or a whole number
#    = found:    a float: X[b, 0]
#    = help:     compare it: X[b, 0] != 0
