"""A schedule asks for what the target does not enforce."""

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
    program().spatial_map((2, 2)).compile(target="ascend_npu")


# error[S101]: target ascend_npu does not enforce spatial_map
#   --> directive_not_enforced.py:22:5
#      |
#   22 |     program().spatial_map((2, 2)).compile(target="ascend_npu")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: no such directive
#    = found:    SpatialMap.of((2, 2))
#    = help:     compile for cpu_sim or interp, which do; or drop it, or compile(..., strict=False) to have it recorded and not enforced
#    = note:     the runtime chooses the core of each task, and knows no distance between cores
