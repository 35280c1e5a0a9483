"""A kernel calls a workload."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload

X, Y = (Tensor(np.zeros((4, 8), np.float32), name=name) for name in "XY")


@workload
def nothing():
    pass


@kernel
def copy(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    nothing()
    pto.store(y, x)


@workload
def mistake():
    copy[0](x=X, y=Y)


# error[K105]: `nothing` is a workload, and was called in another body
#   --> workload_in_a_kernel.py:17:5
#      |
#   17 |     nothing()
#      |     ^^^^^^^^^
#    = help:     call it in a workload, or outside of such bodies
