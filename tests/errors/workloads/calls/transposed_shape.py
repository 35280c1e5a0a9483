"""A view has rows and columns the other way round."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
TURNED = Tensor(np.zeros((128, 16), np.float32))


@workload
def program() -> None:
    scale(x=TURNED, y=Y[0])


def mistake() -> None:
    program()


# error[T201]: kernel `scale`: argument `x` has the wrong shape
#   --> transposed_shape.py:19:13
#      |
#   19 |     scale(x=TURNED, y=Y[0])
#      |             ^^^^^^
#    = expected: Tile[16, 128, f32]
#    = found:    [128, 16] f32, a view of `TURNED` [128, 16]
#    = help:     transpose it: TURNED.T
