"""An array is passed where a tensor is expected."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    scale(x=np.zeros((16, 128), np.float32), y=Y[0])


def mistake() -> None:
    program()


# error[T205]: kernel `scale`: argument `x` is not a view of a tensor
#   --> array_as_argument.py:18:13
#      |
#   18 |     scale(x=np.zeros((16, 128), np.float32), y=Y[0])
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: In[Tile[16, 128, f32]]
#    = found:    an array [16, 128] of float32
#    = help:     wrap the array: X = Tensor(array), then X[b][t]
