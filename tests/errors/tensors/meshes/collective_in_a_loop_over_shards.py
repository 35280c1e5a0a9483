"""A collective stands in a loop whose iterations are on different ranks."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allreduce, jit, tt


@jit
def f(a, b):
    out = tt.zeros(a.shape)
    for i in tt.each(a.shape[0]):
        out[i] = allreduce(a[i] @ b, "x")
    return out


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 3, 8), np.float32), layout=TensorLayout.sharded(0, 3, "x")),
        Tensor(np.ones((8, 8), np.float32), layout=TensorLayout.replicated(2)))


# error[M109]: allreduce in a loop whose iterations are on different ranks
#   --> collective_in_a_loop_over_shards.py:12:18
#      |
#   12 |         out[i] = allreduce(a[i] @ b, "x")
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    the loop over i, along 'x'
#    = help:     keep the parts in a tensor made before the loop, and move them behind it
