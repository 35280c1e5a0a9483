"""The mesh has no such axis."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allgather, jit


@jit
def f(a):
    return allgather(a, "z")


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M102]: `Mesh(x=2)` has no axis 'z'
#   --> collective_over_an_axis_that_is_not_there.py:10:12
#      |
#   10 |     return allgather(a, "z")
#      |            ^^^^^^^^^^^^^^^^^
#    = expected: one of 'x', or a number below 1
