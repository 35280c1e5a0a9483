"""A kernel loops with the workload's word, and a workload calls the kernel."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

X, Y = (Tensor(np.zeros((4, 8), np.float32), name=name) for name in "XY")


@kernel
def copy(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    for _ in P(3):
        pto.store(y, x)


@workload
def mistake():
    copy[0](x=X, y=Y)


# error[K105]: a loop `P(...)` outside a workload
#   --> loop_in_a_kernel.py:12:14
#      |
#   12 |     for _ in P(3):
#      |              ^^^^
#    = help:     in a kernel it is pto.range(n), in a workload P(n), in a function on tensors tt.each(n)
