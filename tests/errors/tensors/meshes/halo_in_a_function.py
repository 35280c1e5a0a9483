"""Rows of neighbours are asked for in a function on whole tensors."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, halo, jit


@jit
def f(a):
    return halo(a, 1)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M109]: halo in a function on tensors: the rows of neighbours are parts of no whole tensor
#   --> halo_in_a_function.py:10:12
#      |
#   10 |     return halo(a, 1)
#      |            ^^^^^^^^^^
#    = help:     allgather(t) and slices of it, or the step as a workload: halo(t, k), then `for r in P(mesh)`
