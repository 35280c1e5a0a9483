"""A tensor is reduced that is partial along no axis."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, allreduce, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))
Z = Tensor(np.zeros((4, 8), np.float32), name="Z", layout=TensorLayout.replicated(2))


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    for _ in P(mesh):
        pass
    allreduce(X, out=Z)


def mistake() -> None:
    made().compile("interp")


# error[M101]: allreduce: which mesh axis?
#   --> partial_term_of_a_whole_tensor.py:21:5
#      |
#   21 |     allreduce(X, out=Z)
#      |     ^^^^^^^^^^^^^^^^^^^
#   --> partial_term_of_a_whole_tensor.py:8:58: the layout was made here
#     |
#   8 | X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))
#     |                                                          ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: an axis that the tensor is partial along: none
#    = found:    None, of layout TensorLayout(R, R)
