"""A tensor that a loop's body makes is used behind the loop."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scratch = Tensor.empty((16, 128), DType.F32)
        scale[b](x=X[b], y=scratch)
    scale(x=scratch, y=Y[0])


def mistake() -> None:
    program()


# error[W105]: `scratch` is used behind the body that makes it
#   --> behind_its_body.py:21:13
#      |
#   21 |     scale(x=scratch, y=Y[0])
#      |             ^^^^^^^
#    = help:     a Tensor.empty made in a body is another one each time, and ends with it: use it there, or make it in front
