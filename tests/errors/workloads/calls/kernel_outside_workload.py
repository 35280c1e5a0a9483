"""A kernel is called like a function."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


def mistake() -> None:
    scale(X[0], Y[0])


# error[K105]: kernel `scale` was called outside a workload
#   --> kernel_outside_workload.py:17:5
#      |
#   17 |     scale(X[0], Y[0])
#      |     ^^^^^^^^^^^^^^^^^
#    = help:     call it in a function decorated with @workload; for NumPy arrays at once: scale.run(...)
