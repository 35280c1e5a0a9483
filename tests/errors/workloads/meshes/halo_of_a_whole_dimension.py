"""Neighbours' rows are asked for along a dimension that is not cut."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, halo, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    for _ in P(mesh):
        pass
    halo(X, 1)


def mistake() -> None:
    made().compile("interp")


# error[M101]: halo: dimension 0 is not cut, so there are no neighbours
#   --> halo_of_a_whole_dimension.py:20:5
#      |
#   20 |     halo(X, 1)
#      |     ^^^^^^^^^^
#    = expected: a dimension that a mesh axis cuts
#    = found:    TensorLayout(R, R)
