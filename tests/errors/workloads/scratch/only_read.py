"""A tensor that a loop's body makes is read, and nothing has written it."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


Y = Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scratch = Tensor.empty((16, 128), DType.F32)
        scale[b](x=scratch, y=Y[b])


def mistake() -> None:
    program().compile(target="interp")


# error[W102]: `scratch` is read and no task writes it
#   --> only_read.py:19:19
#      |
#   19 |         scratch = Tensor.empty((16, 128), DType.F32)
#      |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     a Tensor.empty made in a body holds nothing before a task has written it there; Tensor(array) has contents
