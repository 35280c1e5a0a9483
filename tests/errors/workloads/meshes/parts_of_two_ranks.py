"""A task takes parts of two ranks."""

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
        scale[r](X.on(r), Y.on((r + 1) % 4))


def mistake() -> None:
    program()


# error[M103]: kernel `scale`: arguments `x` and `y` are parts of two ranks
#   --> parts_of_two_ranks.py:22:9
#      |
#   22 |         scale[r](X.on(r), Y.on((r + 1) % 4))
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: the parts of one rank
#    = found:    rank r and rank (r + 1) % 4
#    = help:     copy one first: copy(B.on(q), C.on(r))
