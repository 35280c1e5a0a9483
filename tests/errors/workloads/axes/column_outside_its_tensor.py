"""A column lies outside the tensor that it indexes."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Sparse, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
indptr, indices = np.array([0, 2, 2, 3, 3]), np.array([0, 4, 2])
Z = Tensor(np.zeros((4, 4, 8), np.float32))
routing = Sparse(Dense[4](), indptr, indices)


@workload
def program() -> None:
    for b, e in P(routing):
        scale[b, e](x=X[b], y=Z[b, e])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R104]: an index lies outside its tensor: `Z[b, e]`
#   --> column_outside_its_tensor.py:22:31
#      |
#   22 |         scale[b, e](x=X[b], y=Z[b, e])
#      |                               ^^^^^^^
#    = expected: 0 .. 3
#    = found:    4
#    = help:     bind tensors that are large enough, or bound the loop
#    = note:     in the iteration b = 0, e.position = 1, e = 4
