"""A table sends a task outside its tensor."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
pages = Tensor(np.array([0, 3, 4, 1], np.int32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[pages[b]], y=Y[b])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R104]: an index lies outside its tensor: `X[pages[b]]`
#   --> table_points_outside.py:20:20
#      |
#   20 |         scale[b](x=X[pages[b]], y=Y[b])
#      |                    ^^^^^^^^^^^
#    = expected: 0 .. 3
#    = found:    pages[b] = 4
#    = help:     bind tensors that are large enough, or bound the loop
#    = note:     in the iteration b = 2
