"""The largest element of a partial sum is asked for."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return np.max(a @ b, axis=0)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: a partial sum is reduced by max
#   --> maximum_of_a_partial_sum.py:10:12
#      |
#   10 |     return np.max(a @ b, axis=0)
#      |            ^^^^^^^^^^^^^^^^^^^^^
#   --> maximum_of_a_partial_sum.py:10:19: made here
#      |
#   10 |     return np.max(a @ b, axis=0)
#      |                   ^^^^^
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce it first
