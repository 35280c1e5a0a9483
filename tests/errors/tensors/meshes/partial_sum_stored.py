"""A partial sum is written into an argument."""

import numpy as np

from pto_wsp import DType, InOut, Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b, total: InOut[Tensor[4, 4, DType.F32]]):
    total[:] = a @ b


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
        Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: a store of a partial tensor
#   --> partial_sum_stored.py:10:5
#      |
#   10 |     total[:] = a @ b
#      |     ^^^^^^^^
#   --> partial_sum_stored.py:10:16: made here
#      |
#   10 |     total[:] = a @ b
#      |                ^^^^^
#    = expected: a tensor without partial results
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce first; reduce_scatter leaves each rank a shard of the total
