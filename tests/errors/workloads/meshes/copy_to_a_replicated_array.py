"""A part is copied to an array of which ranks have copies."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, copy, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))
Z = Tensor(np.zeros((4, 8), np.float32), name="Z", layout=TensorLayout.replicated(2))


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    for r in P(mesh):
        copy(X.on(r), Z.on(r))


def mistake() -> None:
    made().compile("interp")


# error[M103]: copy: every rank along x has a copy of the target
#   --> copy_to_a_replicated_array.py:20:9
#      |
#   20 |         copy(X.on(r), Z.on(r))
#      |         ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a shard, or a tensor of the program
#    = found:    an array of layout TensorLayout(R, R)
