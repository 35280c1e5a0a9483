"""A tensor is gathered along an axis that does not cut it."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allgather, jit


@jit
def f(a):
    return allgather(a, "y")


def mistake() -> None:
    f.using(mesh=Mesh(x=2, y=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: allgather: `a` is not cut along 'y'
#   --> allgather_along_another_axis.py:10:12
#      |
#   10 |     return allgather(a, "y")
#      |            ^^^^^^^^^^^^^^^^^
#   --> allgather_along_another_axis.py:14:77: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2, y=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 'x'
#    = found:    TensorLayout(S('x'), R)
