"""A partial sum is written into state."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit, tt


@jit
def f(a, b):
    out = tt.zeros((4, 4))
    out[:] = a @ b
    return out


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: a store of a partial tensor
#   --> partial_sum_stored.py:11:5
#      |
#   11 |     out[:] = a @ b
#      |     ^^^^^^
#   --> partial_sum_stored.py:11:14: made here
#      |
#   11 |     out[:] = a @ b
#      |              ^^^^^
#    = expected: a tensor without partial results
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce first; reduce_scatter leaves each rank a shard of the total
