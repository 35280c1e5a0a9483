"""A tensor of doubles is bound to a tile of floats."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
D = Tensor(np.zeros((4, 16, 128)))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=D[b], y=Y[b])


def mistake() -> None:
    program()


# error[T102]: kernel `scale`: argument `x` has the wrong dtype
#   --> wrong_dtype.py:20:20
#      |
#   20 |         scale[b](x=D[b], y=Y[b])
#      |                    ^^^^
#    = expected: Tile[16, 128, f32]
#    = found:    f64, a view of `D` [4, 16, 128]
#    = help:     wrap an array of dtype f32, or annotate x with DType.F64
