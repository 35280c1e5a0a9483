"""A condition reads an element that one rank has."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit, tt


@jit
def f(a):
    out = tt.zeros((2,))
    with tt.when(a[1] > 0):
        out[:] = out + 1
    return out


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones(4, np.int32), layout=TensorLayout.sharded(0, 1, "x")))


# error[M108]: an element of `a` is read as a number, and ranks hold parts of it
#   --> number_read_of_a_shard.py:11:5
#      |
#   11 |     with tt.when(a[1] > 0):
#      |     ^^^^^^^^^^^^^^^^^^^^^^^
#   --> number_read_of_a_shard.py:17:65: made here
#      |
#   17 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones(4, np.int32), layout=TensorLayout.sharded(0, 1, "x")))
#      |                                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a replicated tensor
#    = found:    TensorLayout(S('x'))
#    = help:     allgather or allreduce it first
