"""A collective sums a term that one rank never writes."""

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
    Y = Tensor.empty((4, 8), DType.F32, name="Y", layout=TensorLayout.partial_of(2, "x"))
    for r in P(mesh):
        with P.when(r < 1):
            scale[r](X.on(r), Y.on(r))
    allreduce(Y, out=Z)


def mistake() -> None:
    made().compile("interp")


# error[W102]: `Y` is read of rank 1, and nobody writes it there
#   --> term_that_a_rank_does_not_write.py:23:5
#      |
#   23 |     allreduce(Y, out=Z)
#      |     ^^^^^^^^^^^^^^^^^^^
#   --> term_that_a_rank_does_not_write.py:22:13: it is written here
#      |
#   22 |             scale[r](X.on(r), Y.on(r))
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a part that is written on every rank of which it is read
#    = found:    tasks that write it on 1 rank: 0
#    = help:     call the kernel on every rank; a rank without a term of a sum writes zeros
