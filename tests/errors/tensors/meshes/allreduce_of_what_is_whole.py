"""A tensor is reduced that is partial over no axis."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allreduce, jit


@jit
def f(a):
    return allreduce(a)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: allreduce: `a` is partial along no axis
#   --> allreduce_of_what_is_whole.py:10:12
#      |
#   10 |     return allreduce(a)
#      |            ^^^^^^^^^^^^
#   --> allreduce_of_what_is_whole.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a tensor that is partial along an axis
#    = found:    TensorLayout(S('x'), R)
