"""A partial sum is cast: ranks would round terms."""

import numpy as np

from pto_wsp import DType, Mesh, Tensor, TensorLayout, allreduce, jit


@jit
def f(a, b):
    return allreduce((a @ b).astype(DType.F16))


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: a cast of a partial tensor
#   --> partial_sum_cast.py:10:22
#      |
#   10 |     return allreduce((a @ b).astype(DType.F16))
#      |                      ^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> partial_sum_cast.py:10:23: made here
#      |
#   10 |     return allreduce((a @ b).astype(DType.F16))
#      |                       ^^^^^
#    = expected: a tensor without partial results
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce first; reduce_scatter leaves each rank a shard of the total
