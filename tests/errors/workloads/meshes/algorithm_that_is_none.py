"""A collective by an algorithm that there is not."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, allgather, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.sharded(0, 2, "x"))


@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    for _ in P(mesh):
        pass
    allgather(X, algorithm="star")


def mistake() -> None:
    made().compile("interp")


# error[M104]: allgather: there is no such algorithm
#   --> algorithm_that_is_none.py:20:5
#      |
#   20 |     allgather(X, algorithm="star")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: ring or tree or direct
#    = found:    'star'
