"""indptr has an entry too few."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Sparse, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
indptr, indices = np.array([0, 1, 2, 2]), np.array([3, 1])


@workload
def program() -> None:
    for b, e in P(Sparse(Dense[4](), indptr, indices)):
        scale[b](x=X[b], y=Y[e])


def mistake() -> None:
    program()


# error[W106]: Sparse takes one indptr a row and one behind the last
#   --> too_few_row_pointers.py:19:19
#      |
#   19 |     for b, e in P(Sparse(Dense[4](), indptr, indices)):
#      |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 5 entries, for 4 rows
#    = found:    4
