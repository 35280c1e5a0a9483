"""The whole of a tensor over ranks is bound."""

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
    for r in P(mesh):
        scale[r](X[0:2], Y.on(r))


def mistake() -> None:
    program()


# error[M103]: kernel `scale`: argument `x` is a tensor over ranks
#   --> whole_of_a_tensor_over_ranks.py:22:18
#      |
#   22 |         scale[r](X[0:2], Y.on(r))
#      |                  ^^^^^^
#    = expected: the part of one rank: X.on(r)
#    = found:    the whole, of layout TensorLayout(S('x'), R)
