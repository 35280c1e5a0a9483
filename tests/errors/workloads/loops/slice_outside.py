"""A slice ends outside its tensor."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32), name="X"), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    scale(x=X[0, 8:24], y=Y[0])


def mistake() -> None:
    program()


# error[T301]: index 24 is outside dimension 0 of `X[0]`
#   --> slice_outside.py:18:13
#      |
#   18 |     scale(x=X[0, 8:24], y=Y[0])
#      |             ^^^^^^^^^^
#    = expected: 0 .. 16
#    = found:    24
#    = help:     slices never clip in silence; .clip(...) keeps what is there
