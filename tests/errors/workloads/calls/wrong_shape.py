"""A view has twice the rows of its tile."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
LONG = Tensor(np.zeros((4, 32, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](LONG[b], Y[b])


def mistake() -> None:
    program()


# error[T201]: kernel `scale`: argument `x` has the wrong shape
#   --> wrong_shape.py:20:18
#      |
#   20 |         scale[b](LONG[b], Y[b])
#      |                  ^^^^^^^
#    = expected: Tile[16, 128, f32]
#    = found:    [32, 128] f32, a view of `LONG` [4, 32, 128]
#    = help:     slice it: LONG[b][i*16:(i+1)*16]
