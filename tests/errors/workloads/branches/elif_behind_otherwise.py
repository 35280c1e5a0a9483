"""A condition goes on a P.otherwise()."""

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
            scale[b](x=X[b], y=Y[b])
        with P.otherwise():
            scale[b](x=X[b], y=Y[b])
        with P.elif_(b > 0):
            scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[W102]: `P.elif_(b > 0)` does not stand directly after a `with P.when(...)`
#   --> elif_behind_otherwise.py:23:9
#      |
#   23 |         with P.elif_(b > 0):
#      |         ^^^^^^^^^^^^^^^^^^^^
#    = help:     it goes on the conditions before it in the same body: nothing may come between them, and nothing goes on a P.otherwise()
