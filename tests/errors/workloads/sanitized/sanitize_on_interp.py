"""The interpreter has no sanitizer."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((1, 8), np.float32), name="X"), Tensor(np.zeros((1, 8), np.float32), name="Y")


@workload
def program() -> None:
    scale(x=X, y=Y)


def mistake() -> None:
    program().compile(target="interp", sanitize=True)


# error[C104]: target interp has no sanitize
#   --> sanitize_on_interp.py:22:5
#      |
#   22 |     program().compile(target="interp", sanitize=True)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     interp runs tasks in program order, one by one; compile for cpu_sim to look for races
