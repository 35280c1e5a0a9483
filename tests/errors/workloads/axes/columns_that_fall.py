"""The columns of a row do not ascend."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Sparse, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
indptr, indices = np.array([0, 2, 2, 3, 3]), np.array([3, 1, 2])
Z = Tensor(np.zeros((4, 4, 8), np.float32))
routing = Sparse(Dense[4](), indptr, indices)


@workload
def program() -> None:
    for b, e in P(routing):
        scale[b, e](x=X[b], y=Z[b, e])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R114]: axis `routing`: the columns of a row do not ascend
#   --> columns_that_fall.py:26:5
#      |
#   26 |     program().compile(target="interp").run()
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: indices[1] > 3
#    = found:    1, in row 0
#    = help:     sort the columns of each row, and their values with them
