"""A collective stands in a loop whose count reads a part."""

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
    for _ in P.seq(N[1]):
        allreduce(Y, out=Z)


def mistake() -> None:
    made().compile("interp")


# error[M104]: allreduce depends on what differs by rank
#   --> collective_in_a_loop_as_long_as_a_part_says.py:24:9
#      |
#   24 |         allreduce(Y, out=Z)
#      |         ^^^^^^^^^^^^^^^^^^^
#   --> collective_in_a_loop_as_long_as_a_part_says.py:23:14: read here
#      |
#   23 |     for _ in P.seq(N[1]):
#      |              ^^^^^^^^^^^
#    = expected: conditions and bounds of symbols and replicated tensors
#    = found:    N[1]
#    = help:     make the number equal on all ranks first: an allreduce, or an allgather
