"""A total is written to a tensor of another layout."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, allreduce, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))
Z = Tensor(np.zeros((4, 8), np.float32), name="Z", layout=TensorLayout.sharded(0, 2, "x"))


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    Y = Tensor.empty((4, 8), DType.F32, name="Y", layout=TensorLayout.partial_of(2, "x"))
    for r in P(mesh):
        scale[r](X.on(r), Y.on(r))
    allreduce(Y, out=Z)


def mistake() -> None:
    made().compile("interp")


# error[M104]: allreduce: out does not fit the result
#   --> result_for_another_layout.py:22:5
#      |
#   22 |     allreduce(Y, out=Z)
#      |     ^^^^^^^^^^^^^^^^^^^
#    = expected: [4, 8] f32, TensorLayout(R, R)
#    = found:    [4, 8] f32, TensorLayout(S('x'), R)
