"""A tensor in a workload over ranks says nothing of them."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


mesh = Mesh(x=4)
rows = TensorLayout.sharded(0, 2, "x")
X = Tensor(np.zeros((8, 8), np.float32), layout=rows)
Y = Tensor(np.zeros((8, 8), np.float32), layout=rows)


@workload
def program() -> None:
    plain = Tensor(np.zeros((2, 8), np.float32), name="plain")
    for r in P(mesh):
        scale[r](plain, Y.on(r))


def mistake() -> None:
    program()


# error[M103]: kernel `scale`: argument `x` says nothing of ranks
#   --> tensor_without_a_layout.py:23:18
#      |
#   23 |         scale[r](plain, Y.on(r))
#      |                  ^^^^^
#    = expected: a tensor with a layout, or one that the body of a loop over the mesh makes
#    = found:    Tensor(plain, shape=(2, 8), f32)
#    = help:     Tensor(array, layout=TensorLayout.replicated(2)), then plain.on(r)
