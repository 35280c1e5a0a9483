"""A row of a Sparse is walked with two variables."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Sparse, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
indptr, indices = np.array([0, 2, 2, 3, 3]), np.array([0, 3, 2])
routing = Sparse(Dense[4](), indptr, indices)


@workload
def program() -> None:
    for b, e in P(routing[0]):
        scale[b](x=X[b], y=Y[e])


def mistake() -> None:
    program()


# error[W106]: a sparse row has one variable, its column
#   --> sparse_in_one_variable.py:20:9
#      |
#   20 |     for b, e in P(routing[0]):
#      |         ^^^^
#    = found:    Column(i0) unpacked
#    = help:     i0.position is where it stands in the indices; for b, e in P(routing) walks the rows, too
