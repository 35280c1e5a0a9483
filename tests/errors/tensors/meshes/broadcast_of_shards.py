"""A tensor of which each rank has a part is broadcast."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, broadcast, jit


@jit
def f(a):
    return broadcast(a, 1)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: broadcast: ranks along every axis have parts or terms of `a`, not copies
#   --> broadcast_of_shards.py:10:12
#      |
#   10 |     return broadcast(a, 1)
#      |            ^^^^^^^^^^^^^^^
#   --> broadcast_of_shards.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a tensor that ranks have whole
#    = found:    TensorLayout(S('x'), R)
#    = help:     allgather gives every rank all parts, allreduce the sum of the terms
