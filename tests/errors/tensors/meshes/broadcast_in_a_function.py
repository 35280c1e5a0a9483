"""A rank's copy is broadcast in a function on whole tensors."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, broadcast, jit


@jit
def f(a):
    return broadcast(a, 1)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.replicated(2)))


# error[M109]: broadcast in a function on tensors: every rank has the same replicated tensor already
#   --> broadcast_in_a_function.py:10:12
#      |
#   10 |     return broadcast(a, 1)
#      |            ^^^^^^^^^^^^^^^
#    = help:     leave it out; of a tensor that ranks have parts or terms of, allgather or allreduce gives every rank the whole
