"""A reshape takes shards apart."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a):
    return a.reshape(2, 6) + 1


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((3, 4), np.float32), layout=TensorLayout.sharded(1, 2, "x")))


# error[M108]: dimension 1 is cut, and a reshape takes it apart
#   --> reshape_of_shards.py:10:12
#      |
#   10 |     return a.reshape(2, 6) + 1
#      |            ^^^^^^^^^^^^^^^^^^^
#   --> reshape_of_shards.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((3, 4), np.float32), layout=TensorLayout.sharded(1, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a shape whose shards are rows of the same ranks
#    = found:    TensorLayout(R, S('x')) of [3, 4] as [2, 6]
#    = help:     relayout to TensorLayout(R, R) first
