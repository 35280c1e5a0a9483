"""compile() is given a target that there is not."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    scale(x=X[0], y=Y[0])


def mistake() -> None:
    program().compile(target="cuda")


# error[C104]: there is no target 'cuda'
#   --> unknown_target.py:22:5
#      |
#   22 |     program().compile(target="cuda")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of cpu_sim, interp, ascend_npu, pto
