"""A workload's function is combined, not the workload."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, sequential, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    scale(x=X[0], y=Y[0])


def mistake() -> None:
    sequential(program, program())


# error[W102]: sequential takes workloads
#   --> uncalled_workload.py:22:5
#      |
#   22 |     sequential(program, program())
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    workload program
#    = help:     call the function: it returns the workload
