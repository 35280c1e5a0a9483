"""A collective stands under a condition that reads a part: ranks would disagree."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, allreduce, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))
Z = Tensor(np.zeros((4, 8), np.float32), name="Z", layout=TensorLayout.replicated(2))
N = Tensor(np.ones(2, np.int32), name="N", layout=TensorLayout.sharded(0, 1, "x"))


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    Y = Tensor.empty((4, 8), DType.F32, name="Y", layout=TensorLayout.partial_of(2, "x"))
    for r in P(mesh):
        scale[r](X.on(r), Y.on(r))
    with P.when(N[0] > 0):
        allreduce(Y, out=Z)


def mistake() -> None:
    made().compile("interp")


# error[M104]: allreduce depends on what differs by rank
#   --> collective_under_a_condition_of_a_part.py:24:9
#      |
#   24 |         allreduce(Y, out=Z)
#      |         ^^^^^^^^^^^^^^^^^^^
#   --> collective_under_a_condition_of_a_part.py:23:10: read here
#      |
#   23 |     with P.when(N[0] > 0):
#      |          ^^^^^^^^^^^^^^^^
#    = expected: conditions and bounds of symbols and replicated tensors
#    = found:    N[0] > 0
#    = help:     make the number equal on all ranks first: an allreduce, or an allgather
