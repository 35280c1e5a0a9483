"""A total is scattered over a dimension that is cut already."""

import numpy as np

from pto_wsp import Mesh, Shard, Tensor, TensorLayout, jit, reduce_scatter


@jit
def f(a, b):
    return reduce_scatter(a @ b, 0, "y")


def mistake() -> None:
    f.using(mesh=Mesh(x=2, y=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout((Shard("x"), Shard("y")))),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.sharded(0, 2, "y")))


# error[M101]: dimension 0 is cut already
#   --> scatter_to_a_cut_dimension.py:10:12
#      |
#   10 |     return reduce_scatter(a @ b, 0, "y")
#      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension that is replicated
#    = found:    TensorLayout(S('x'), R; Partial('y', 'sum'))
