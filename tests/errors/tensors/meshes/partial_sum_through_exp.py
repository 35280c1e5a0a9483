"""A partial sum goes through exp: the sum comes first."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return np.exp(a @ b)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: `exp` of a partial tensor
#   --> partial_sum_through_exp.py:10:12
#      |
#   10 |     return np.exp(a @ b)
#      |            ^^^^^^^^^^^^^
#   --> partial_sum_through_exp.py:10:19: made here
#      |
#   10 |     return np.exp(a @ b)
#      |                   ^^^^^
#    = expected: a tensor without partial results
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce first; reduce_scatter leaves each rank a shard of the total
