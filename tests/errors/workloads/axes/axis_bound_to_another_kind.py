"""A sparse axis is bound to a ragged one."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Ragged, Sparse, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
indptr, indices = np.array([0, 2, 2, 3, 3]), np.array([0, 3, 2])
Z = Tensor(np.zeros((4, 4, 8), np.float32))
routing = Sparse(Dense[4](), indptr, indices)


@workload
def program() -> None:
    for b, e in P(routing):
        scale[b, e](x=X[b], y=Z[b, e])


def mistake() -> None:
    program().compile(target="interp").run(routing=Ragged(Dense[4](), Tensor(np.array([1, 2, 3, 4]), name="lens")))


# error[R102]: axis `routing` is bound to something else
#   --> axis_bound_to_another_kind.py:26:5
#      |
#   26 |     program().compile(target="interp").run(routing=Ragged(Dense[4](), Tensor(np.array([1, 2, 3, 4]), name="lens")))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a Sparse of 2 tensors, as it was made
#    = found:    Ragged: Ragged(Dense[4], lens)
