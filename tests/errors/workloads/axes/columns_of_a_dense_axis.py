"""P.sel walks an axis that has no columns."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
batch = Dense[4]()


@workload
def program() -> None:
    for b in P.sel(batch):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[W102]: P.sel walks the columns of a Sparse
#   --> columns_of_a_dense_axis.py:19:14
#      |
#   19 |     for b in P.sel(batch):
#      |              ^^^^^^^^^^^^
#    = expected: routing[b], or routing
#    = found:    DenseAxis: Dense[4]
#    = help:     P(...) loops over any other axis
