"""A part is copied to one of another shape."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, copy, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.sharded(0, 2, "x"))
Q = Tensor(np.zeros((6, 8), np.float32), name="Q", layout=TensorLayout.sharded(0, 2, "x"))


@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    for r in P(mesh):
        copy(X.on(r), Q.on(1 - r))


def mistake() -> None:
    made().compile("interp")


# error[M104]: copy: the parts differ
#   --> copy_of_unequal_parts.py:20:9
#      |
#   20 |         copy(X.on(r), Q.on(1 - r))
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: equal shapes and dtypes
#    = found:    TensorView(X[r * 2:(r + 1) * 2], shape=(2, 8), f32) and TensorView(Q[(-r + 1) * 3:(-r + 2) * 3], shape=(3, 8), f32)
