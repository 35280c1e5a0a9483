"""Terms of a sum are compared with a number."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return np.where(a @ b > 1, 1.0, 0.0)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: `gt` with a number of a partial tensor
#   --> partial_sum_compared.py:10:21
#      |
#   10 |     return np.where(a @ b > 1, 1.0, 0.0)
#      |                     ^^^^^^^^^
#   --> partial_sum_compared.py:10:21: made here
#      |
#   10 |     return np.where(a @ b > 1, 1.0, 0.0)
#      |                     ^^^^^
#    = expected: a tensor without partial results
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce first; reduce_scatter leaves each rank a shard of the total
