"""A view keeps an axis too many."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    scale(x=X, y=Y[0])


def mistake() -> None:
    program()


# error[T103]: kernel `scale`: argument `x` has 3 dimensions
#   --> wrong_rank.py:18:13
#      |
#   18 |     scale(x=X, y=Y[0])
#      |             ^
#    = expected: Tile[16, 128, f32]: two dimensions
#    = found:    [4, 16, 128] f32, a view of `X` [4, 16, 128]
#    = help:     index 1 more axis, e.g. X[…]
