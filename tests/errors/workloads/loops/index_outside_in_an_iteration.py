"""The last iteration reads outside the tensor."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b + 1], y=Y[b])


def mistake() -> None:
    program().compile(target="interp")


# error[T301]: an index lies outside its tensor: `X[b + 1]`
#   --> index_outside_in_an_iteration.py:19:20
#      |
#   19 |         scale[b](x=X[b + 1], y=Y[b])
#      |                    ^^^^^^^^
#    = expected: 0 .. 3
#    = found:    4
#    = help:     bound the loop by the tensor, or use .clip(...) for a last block that may be short
#    = note:     for example where b = 3
