"""A partial sum is returned."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return a @ b


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: `out` is returned and partial over x
#   --> partial_sum_as_a_result.py:10:12
#      |
#   10 |     return a @ b
#      |            ^^^^^
#    = expected: a sharded or replicated result
#    = found:    TensorLayout(R, R; Partial('x', 'sum'))
#    = help:     allreduce it here, or in a function whose body calls this one; reduce_scatter leaves each rank a shard of the total
