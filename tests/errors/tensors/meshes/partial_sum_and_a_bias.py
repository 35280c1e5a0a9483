"""Every rank would add the bias to its own term."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b, c):
    return a @ b + c


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
        Tensor(np.ones((4,), np.float32), layout=TensorLayout.replicated(1)))


# error[M101]: a partial tensor is added to another one
#   --> partial_sum_and_a_bias.py:10:12
#      |
#   10 |     return a @ b + c
#      |            ^^^^^^^^^
#   --> partial_sum_and_a_bias.py:10:12: the first was made here
#      |
#   10 |     return a @ b + c
#      |            ^^^^^
#   --> partial_sum_and_a_bias.py:17:50: the second was made here
#      |
#   17 |         Tensor(np.ones((4,), np.float32), layout=TensorLayout.replicated(1)))
#      |                                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: partial sums over the same axes, or none
#    = found:    TensorLayout(R, R; Partial('x', 'sum')) and TensorLayout(R)
#    = help:     allreduce the partial one first
